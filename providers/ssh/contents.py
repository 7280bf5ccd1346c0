"""The steps of a change with the contents of files that stand in Secrets: read at the last moment, kept nowhere."""

from __future__ import annotations

import base64

from api.names import HOST_FILES_SECRET_TYPE
from providers.base.contract import HostContent, KubeletUpgrade, Secrets
from providers.base.errors import ErrorClass, ProviderError


async def script_with_contents(upgrade: KubeletUpgrade, secrets: Secrets) -> bytes:
    """The script, after its first line ``content_0=BASE64`` and so on: variables that no program of it inherits.

    Raises ProviderError (InvalidConfiguration) that names the Machine's field, for a Secret that is not there, has no
    such key, or is of another type than files of hosts: else whoever makes Machines could read every Secret by a host.
    """
    shebang, _, rest = upgrade.script.partition("\n")
    lines = []
    for number, wanted in enumerate(upgrade.contents):
        content = await _content(wanted, secrets)
        lines.append(f"content_{number}={base64.b64encode(content).decode()}\n")
    return f"{shebang}\n{''.join(lines)}{rest}".encode()


async def _content(wanted: HostContent, secrets: Secrets) -> bytes:
    try:
        data = await secrets.read(wanted.secret, HOST_FILES_SECRET_TYPE)
    except ProviderError as error:
        if error.error_class not in {ErrorClass.NOT_FOUND, ErrorClass.INVALID_CONFIGURATION}:
            raise
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{wanted.field}: {error.message}") from error
    if wanted.key not in data:
        text = f"{wanted.field}: Secret {wanted.secret} has no key {wanted.key}"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
    return data[wanted.key]

"""Why a host gives no answer: host, step and what a person does about it. Pure."""

from __future__ import annotations

from enum import StrEnum

from api.sshhostpool import SSHHost
from providers.base.errors import ErrorClass, ProviderError


class Trouble(StrEnum):
    """Why there is no answer of a host."""

    UNREACHABLE = "unreachable"
    WRONG_KEY = "wrong key"
    WRONG_CERTIFICATE = "wrong certificate"
    """Its host certificate is not of a CA that is pinned, not for its name, or not valid now."""
    REFUSED = "refused"
    NO_ROOT = "no root"
    """The login works, and its user may not become root."""
    FAILED = "failed"
    """The command itself failed on the host."""


_REMEDIES = {
    Trouble.UNREACHABLE: "is it on, is its sshd running, and may you reach it from here?",
    Trouble.WRONG_KEY: "if it was installed anew, write its new key into hostKeys of the pool",
    Trouble.WRONG_CERTIFICATE: "sign its host key for its name by a CA of hostCAs (`ssh-keygen -s CA -h -n NAME`)",
    Trouble.REFUSED: "put the public half of the Secret's key into its authorized_keys",
    Trouble.NO_ROOT: "let its user do `sudo -n /bin/sh` (NOPASSWD in sudoers), or name another user in the pool",
    Trouble.FAILED: "log in by hand and try it; a user that is not root needs sudo without a password",
}
_CLASSES = {
    Trouble.WRONG_KEY: ErrorClass.CONFLICT,
    Trouble.WRONG_CERTIFICATE: ErrorClass.CONFLICT,
    Trouble.REFUSED: ErrorClass.CONFLICT,
    Trouble.NO_ROOT: ErrorClass.CONFLICT,
    Trouble.FAILED: ErrorClass.INTERNAL,
    Trouble.UNREACHABLE: ErrorClass.TIMEOUT,
}


class HostError(Exception):
    """No answer. The message names host and address, and holds nothing that was sent."""

    def __init__(self, trouble: Trouble, host: SSHHost, why: str) -> None:
        super().__init__(f"host {host.name} ({host.address}:{host.port}) {why}")
        self.trouble = trouble

    @property
    def remedy(self) -> str:
        """What a person does about it."""
        return _REMEDIES[self.trouble]

    def as_provider_error(self) -> ProviderError:
        """No class of these stops the calls for other hosts of the pool."""
        return ProviderError(_CLASSES[self.trouble], str(self))


class LoginError(Exception):
    """There is no connection to ``where``: a host, or the proxy jump on the way to it."""

    def __init__(self, trouble: Trouble, why: str) -> None:
        super().__init__(why)
        self.trouble = trouble


def jump_name(address: str, port: int) -> str:
    """As messages name it: ``its proxyJump 10.0.0.1:22``."""
    return f"its proxyJump {address}:{port}"

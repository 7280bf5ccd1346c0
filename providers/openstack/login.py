"""The login that a Secret holds, understood without trusting it: no path on this machine may come from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api import yamltext
from providers.base.errors import ErrorClass, ProviderError
from providers.openstack.config import Cloud

CLOUDS_YAML, CA = "clouds.yaml", "cacert"
APPLICATION_CREDENTIAL = ("authURL", "applicationCredentialID", "applicationCredentialSecret")
LARGEST = 128 << 10

_AUTH_TYPES = {"password", "v3password", "v3applicationcredential"}
_PLAIN = {"region_name", "interface", "identity_api_version", "auth_type", "verify"}
_ENDPOINT = "_endpoint_override"
_SECRETS = {"password", "application_credential_secret"}


@dataclass(frozen=True, slots=True)
class Login:
    """``options`` are keyword arguments of the SDK's ``connect``; ``authority`` is a CA in PEM, "" for the system's."""

    options: Mapping[str, Any] = field(repr=False)
    authority: str = ""

    @property
    def region(self) -> str:
        return str(self.options.get("region_name") or "")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown."""
        auth = self.options.get("auth") or {}
        return tuple(str(auth[name]) for name in _SECRETS if auth.get(name))


def login_in(data: Mapping[str, bytes], cloud: Cloud) -> Login:
    """The login for ``cloud`` from the data of its Secret.

    Raises ProviderError naming the Secret's key and the field, but none of its contents.
    """
    if CLOUDS_YAML in data:
        options = _from_clouds_yaml(_text(data, CLOUDS_YAML), cloud.name)
    elif all(data.get(key) for key in APPLICATION_CREDENTIAL):
        url, identity, secret = (_text(data, key).strip() for key in APPLICATION_CREDENTIAL)
        auth = {"auth_url": url, "application_credential_id": identity, "application_credential_secret": secret}
        options = {"auth_type": "v3applicationcredential", "auth": auth}
    else:
        keys = ", ".join(APPLICATION_CREDENTIAL)
        raise _refused(cloud, f"has neither the key {CLOUDS_YAML} nor the keys {keys}")
    if cloud.region:
        options["region_name"] = cloud.region
    return Login(options, _text(data, CA) if data.get(CA) else "")


def _from_clouds_yaml(text: str, wanted: str | None) -> dict[str, Any]:
    title = f"key {CLOUDS_YAML}"
    try:
        tree = yamltext.load(text)
    except yamltext.TextError as error:
        raise ProviderError(ErrorClass.UNAUTHORIZED, f"{title} of the Secret is not YAML: {error}") from None
    clouds = tree.get("clouds") if isinstance(tree, Mapping) else None
    if not isinstance(clouds, Mapping) or not clouds:
        raise ProviderError(ErrorClass.UNAUTHORIZED, f"{title} of the Secret has no clouds")
    if wanted is None and len(clouds) > 1:
        known = yamltext.shown(", ".join(sorted(map(str, clouds))))
        raise ProviderError(ErrorClass.UNAUTHORIZED, f"{title} of the Secret has several clouds ({known}): name one")
    name = wanted or next(iter(clouds))
    cloud = clouds.get(name)
    if not isinstance(cloud, Mapping) or not isinstance(cloud.get("auth"), Mapping):
        raise ProviderError(ErrorClass.UNAUTHORIZED, f"{title} of the Secret has no cloud {name!r} with auth")
    auth_type = str(cloud.get("auth_type") or "password")
    if auth_type not in _AUTH_TYPES:
        raise ProviderError(
            ErrorClass.UNAUTHORIZED, f"{title} of the Secret: auth_type {yamltext.shown(auth_type)!r} is not supported"
        )
    options = {key: value for key, value in cloud.items() if key in _PLAIN or str(key).endswith(_ENDPOINT)}
    if not isinstance(options.get("verify", True), bool):
        del options["verify"]  # a path
    return {**options, "auth_type": auth_type, "auth": {str(k): v for k, v in cloud["auth"].items()}}


def _text(data: Mapping[str, bytes], key: str) -> str:
    value = data[key]
    if len(value) > LARGEST:
        raise ProviderError(ErrorClass.UNAUTHORIZED, f"key {key} of the Secret is larger than {LARGEST} bytes")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ProviderError(ErrorClass.UNAUTHORIZED, f"key {key} of the Secret is not text") from None


def _refused(cloud: Cloud, why: str) -> ProviderError:
    return ProviderError(ErrorClass.UNAUTHORIZED, f"Secret {cloud.secret_name} {why}")

"""Who a machine is: by a key that is pinned for it, or by a certificate of a CA that is pinned, made for its name.

OpenSSH takes a host certificate without names for any host; here it is refused, as one machine's could then be
shown by all others (ssh-keygen(1), CERTIFICATES).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import asyncssh
from asyncssh.public_key import (
    CERT_TYPE_HOST,
    SSHOpenSSHCertificate,
    decode_ssh_certificate,
    get_default_certificate_algs,
    get_default_public_key_algs,
)

from api.secrets import without_secrets
from api.sshhostpool import SSHHost, SSHProxyJump
from providers.ssh.trouble import LoginError, Trouble

_MOST_NAMES = 5
_REASONS = {
    "Certificate expired": "has expired",
    "Certificate not yet valid": "is not valid yet: is its clock right, and ours?",
    "Invalid certificate type": "is one of a user, not of a host",
}
"""What asyncssh says of a certificate, in words that follow its name."""


@dataclass(frozen=True, slots=True)
class Pins:
    """``keys`` and ``cas``: as in a pool; ``name``: whom a certificate of one of ``cas`` has to be for."""

    keys: tuple[str, ...]
    cas: tuple[str, ...]
    name: str


class WrongCertificateError(asyncssh.HostKeyNotVerifiable):
    """The certificate that a machine shows is not taken. The message follows the machine's name."""


def pins_of(machine: SSHHost | SSHProxyJump) -> Pins:
    keys, cas = tuple(machine.host_keys or ()), tuple(machine.host_cas or ())
    return Pins(keys, cas, machine.certificate_name or machine.address)


class Judge:
    """Of what one machine shows in its handshake. Raises LoginError if what is pinned can't be read."""

    def __init__(self, pins: Pins) -> None:
        self._name = pins.name
        self._keys = [_public_key(text, "hostKeys") for text in pins.keys]
        self._cas = [_public_key(text, "hostCAs") for text in pins.cas]

    def options(self) -> dict[str, Any]:
        """For ``asyncssh.connect``. With CAs alone a machine may still show a plain key, to be refused by name."""
        options: dict[str, Any] = {"known_hosts": (self._keys, self._cas, [])}
        if self._cas:
            options |= {"host_key_alias": self._name, "client_factory": lambda: _Client(self)}
            if not self._keys:
                algorithms = itertools.chain(get_default_certificate_algs(), get_default_public_key_algs())
                options["server_host_key_algs"] = [each.decode() for each in algorithms]
        return options

    def check(self, shown: bytes) -> asyncssh.SSHKey | None:
        """The key that is pinned though its certificate is not taken; None where asyncssh has to judge further.

        ``shown``: in the SSH wire format. Raises WrongCertificateError.
        """
        try:
            certificate = decode_ssh_certificate(shown)
        except asyncssh.KeyImportError:
            if not self._keys:
                raise WrongCertificateError("shows a host key without a certificate of its hostCAs") from None
            return None
        fault = self._fault(certificate)
        if fault and certificate.key in self._keys:
            return certificate.key
        if fault:
            raise WrongCertificateError(f"shows a host certificate that {fault}")
        return None

    def _fault(self, certificate: asyncssh.SSHCertificate) -> str:
        if not isinstance(certificate, SSHOpenSSHCertificate) or certificate.signing_key not in self._cas:
            return "is of a CA that is not among its hostCAs"
        try:
            certificate.validate(CERT_TYPE_HOST, None)
        except ValueError as error:
            return _REASONS.get(str(error), f"is not valid: {str(error)[:100]}")
        if self._name not in certificate.principals:
            names = ", ".join(repr(each[:64]) for each in certificate.principals[:_MOST_NAMES])
            return f"is for {without_secrets(names) or 'no name'}, and not for {self._name!r}"
        return ""


class _Client(asyncssh.SSHClient):
    """Shows the judge what the machine shows: of a certificate, asyncssh's own hooks see the CA alone."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        further = conn.validate_server_host_key

        def validate(key_data: bytes) -> asyncssh.SSHKey:
            return self._judge.check(key_data) or further(key_data)

        conn.validate_server_host_key = validate  # type: ignore[method-assign]


def _public_key(text: str, field: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(text)
    except asyncssh.KeyImportError as error:
        certificate = "-cert-v01@openssh.com" in text.partition(" ")[0]
        what = "an SSH certificate: its CA belongs into hostCAs" if certificate else "no public key"
        raise LoginError(Trouble.WRONG_KEY, f"has an entry in {field} that is {what}") from error

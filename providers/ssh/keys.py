"""Keys in Secrets: what a login is made with. Their text is a user's: nothing in it makes the controllers work long."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import struct
from collections.abc import Mapping

import asyncssh

from providers.base.contract import Secrets
from providers.base.errors import ErrorClass, ProviderError

KEY_NAME = "ssh-privatekey"
"""Key of a Secret of type kubernetes.io/ssh-auth."""
PASSPHRASE_NAME = "ssh-passphrase"  # noqa: S105  (the name of a field)
"""Key of a Secret for the passphrase of its private key."""
CERTIFICATE_NAME = "ssh-certificate"
"""Key of a Secret for the certificate of its private key, as ``ssh-keygen -s`` writes it."""
MOST_ROUNDS = 256
"""Of bcrypt (``ssh-keygen -a``; 16 or 24 by default). 100 rounds take 0.8 s of CPU."""
_CERTIFICATES = ("ssh-privatekey-cert.pub", "ssh-cert", "ssh-publickey-cert")
_PASSWORDS = ("password", "ssh-password", "sudo-password")
_UNUSED = {
    "passphrase": f"a passphrase, whose field is {PASSPHRASE_NAME}",
    **dict.fromkeys(_CERTIFICATES, f"an SSH certificate, whose field is {CERTIFICATE_NAME}"),
    **dict.fromkeys(_PASSWORDS, "a password, which is not supported: remove the field, and log in by the key alone"),
}
_BEGIN, _END = b"-----BEGIN OPENSSH PRIVATE KEY-----", b"-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"

Credential = asyncssh.SSHKey | tuple[asyncssh.SSHKey, asyncssh.SSHCertificate]
"""A private key, alone or with the certificate that goes with it."""


class Keys:
    """The keys of Secrets. Each text is opened once, whether it can be opened or not: a passphrase costs CPU, and a
    pool logs in a thousand times.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._opened: dict[str, tuple[bytes, Credential | ProviderError]] = {}
        self._lock = asyncio.Lock()

    async def read(self, secret: str) -> Credential:
        """Raises ProviderError as ``key_of`` does, and as reading a Secret does."""
        data = await self._secrets.read(secret)
        digest = _digest(data)
        async with self._lock:
            held = self._opened.get(secret)
            if held is None or held[0] != digest:
                held = self._opened[secret] = (digest, await asyncio.to_thread(_opened, secret, data))
        if isinstance(held[1], ProviderError):
            raise held[1]
        return held[1]


def _opened(secret: str, data: Mapping[str, bytes]) -> Credential | ProviderError:
    try:
        return key_of(secret, data)
    except ProviderError as error:
        return error


def _digest(data: Mapping[str, bytes]) -> bytes:
    found = hashlib.sha256()
    for field, text in sorted(data.items()):
        found.update(struct.pack(">QQ", len(field.encode()), len(text)) + field.encode() + text)
    return found.digest()


def key_of(secret: str, data: Mapping[str, bytes]) -> Credential:
    """The private key in the data of Secret ``secret``, with its certificate where there is one.

    Raises ProviderError (InvalidConfiguration) that names the Secret and its field: for none, for one that its
    passphrase does not open, for a certificate of another key, and for what no login uses (passwords), instead of a
    login that fails without a reason.
    """
    unused = next((field for field in _UNUSED if field in data), "")
    if unused:
        raise _refused(f"{unused} of Secret {secret} is {_UNUSED[unused]}")
    if KEY_NAME not in data:
        raise _refused(f"Secret {secret} has no key {KEY_NAME}: it has to be of the type kubernetes.io/ssh-auth")
    key = _private_key(secret, data)
    return key if CERTIFICATE_NAME not in data else (key, _certificate(secret, data[CERTIFICATE_NAME], key))


def _private_key(secret: str, data: Mapping[str, bytes]) -> asyncssh.SSHKey:
    text, title = data[KEY_NAME], f"{KEY_NAME} of Secret {secret}"
    if (rounds := _rounds(text)) is None:
        try:
            return asyncssh.import_private_key(text)
        except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
            raise _refused(f"{title} {_fault_of(text, error)}") from error
    if PASSPHRASE_NAME not in data:
        raise _refused(f"{title} has a passphrase: put it into {PASSPHRASE_NAME} of the same Secret")
    if not 0 < rounds <= MOST_ROUNDS:
        text_ = f"takes {rounds} rounds to open, and {MOST_ROUNDS} are the most: `ssh-keygen -p -a 100` changes that"
        raise _refused(f"{title} {text_}")
    whole = text.lstrip().partition(_END)[0] + _END + b"\n"
    try:
        return asyncssh.import_private_key(whole, data[PASSPHRASE_NAME].rstrip(b"\r\n"))
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        wrong = isinstance(error, asyncssh.KeyEncryptionError) and "ncorrect passphrase" in str(error)
        why = f"is not opened by {PASSPHRASE_NAME} of it" if wrong else "can't be read"
        raise _refused(f"{title} {why}") from error


def _rounds(text: bytes) -> int | None:
    """How often bcrypt works over the passphrase (PROTOCOL.key of OpenSSH); None: no key in that format with one."""
    if not text.lstrip().startswith(_BEGIN):
        return None
    try:
        raw = base64.b64decode(b"".join(text.lstrip()[len(_BEGIN) :].partition(_END)[0].split()), validate=True)
        if not raw.startswith(_MAGIC):
            return None
        cipher, rest = _string(raw[len(_MAGIC) :])
        _, rest = _string(rest)
        options, _ = _string(rest)
        if cipher == b"none":
            return None
        return int(struct.unpack(">I", _string(options)[1][:4])[0])
    except (binascii.Error, struct.error, ValueError):
        return None


def _string(data: bytes) -> tuple[bytes, bytes]:
    """The first string of the SSH wire format (RFC 4251, 5), and what follows it."""
    size = struct.unpack(">I", data[:4])[0]
    return data[4 : 4 + size], data[4 + size :]


def _certificate(secret: str, data: bytes, key: asyncssh.SSHKey) -> asyncssh.SSHCertificate:
    try:
        found = asyncssh.import_certificate(data)
    except (asyncssh.KeyImportError, ValueError) as error:
        raise _refused(f"{CERTIFICATE_NAME} of Secret {secret} is no SSH certificate") from error
    if found.key.public_data != key.public_data:
        raise _refused(f"{CERTIFICATE_NAME} of Secret {secret} is of another key than its {KEY_NAME}")
    return found


def _fault_of(data: bytes, error: Exception) -> str:
    if isinstance(error, asyncssh.KeyEncryptionError) or "passphrase" in str(error).lower():
        return "has a passphrase in another format than OpenSSH's: `ssh-keygen -p -f KEY` writes it in that one"
    if b"-cert-v01@openssh.com" in data[:128]:
        return f"is an SSH certificate: it belongs into {CERTIFICATE_NAME}, and its private key here"
    if data.lstrip().startswith((b"ssh-", b"ecdsa-", b"sk-")):
        return "is a public key: put the private one there"
    return "is no private key"


def _refused(text: str) -> ProviderError:
    return ProviderError(ErrorClass.INVALID_CONFIGURATION, text)

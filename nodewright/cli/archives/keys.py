"""With what an archive is encrypted: a passphrase, or keys of age. Nothing secret is ever an argument or a variable."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from nodewright.cli.exits import USAGE, CliError

_READABLE_BY_OTHERS = 0o077
_SHORTEST = 12
"""Characters of a passphrase: whoever has the file may try as many as they like."""
_LARGEST = 64 * 1024


@dataclass(frozen=True, slots=True)
class KeyFlags:
    """Options that name the key of an archive."""

    passphrase_file: Annotated[
        Path | None,
        typer.Option(
            "--passphrase-file",
            metavar="FILE",
            help="Its first line is the passphrase; else it is asked for on the terminal.",
        ),
    ] = None
    recipient: Annotated[
        list[str] | None,
        typer.Option("--recipient", metavar="KEY", help="A public key of age (age1...) that may read it; repeatable."),
    ] = None
    identity_file: Annotated[
        Path | None,
        typer.Option("--identity-file", metavar="FILE", help="Secret keys of age (age-keygen) that may read it."),
    ] = None

    def keys(self, *, confirm: bool = False) -> Keys:
        """``confirm``: a passphrase that is typed is asked for twice. Raises CliError."""
        if self.passphrase_file is not None and (self.recipient or self.identity_file):
            raise CliError("a passphrase and keys of age exclude each other", "Name one of the two", USAGE)
        identities = tuple(_identities(self.identity_file)) if self.identity_file is not None else ()
        recipients = tuple(self.recipient or ())
        if recipients or identities:
            return Keys(recipients=recipients, identities=identities)
        if self.passphrase_file is not None:
            return Keys(passphrase=_good(_first_line(self.passphrase_file), str(self.passphrase_file)))
        return Keys(passphrase=_asked(confirm=confirm))


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """``passphrase``, or public keys (``recipients``) and secret ones (``identities``) of age."""

    passphrase: str = ""
    recipients: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()


def _first_line(path: Path) -> str:
    return _private(path).partition("\n")[0].rstrip("\r")


def _identities(path: Path) -> list[str]:
    """As age-keygen writes them: lines, those with # are comments."""
    lines = [line.strip() for line in _private(path).splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise CliError(f"{path} holds no key of age", "Make one with age-keygen", USAGE)
    return found


def _private(path: Path) -> str:
    """A file that others may read is refused: what it protects would be theirs, too."""
    try:
        with path.open("rb") as file:
            mode, content = path.stat().st_mode, file.read(_LARGEST)
        if path.is_file() and mode & _READABLE_BY_OTHERS:
            raise CliError(f"{path} may be read by others (mode {mode & 0o777:04o})", f"chmod 600 {path}", USAGE)
        return content.decode()
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}", code=USAGE) from error
    except UnicodeDecodeError as error:
        raise CliError(f"{path} is no text", code=USAGE) from error


def _asked(*, confirm: bool) -> str:
    if not sys.stdin.isatty():
        raise CliError(
            "it is not said with which key", "Use --passphrase-file, or --recipient and --identity-file", USAGE
        )
    passphrase = _good(getpass.getpass("Passphrase: "), "it")
    if confirm and getpass.getpass("The same again: ") != passphrase:
        raise CliError("the two passphrases differ", "Run it again", USAGE)
    return passphrase


def _good(passphrase: str, where: str) -> str:
    if len(passphrase) < _SHORTEST:
        raise CliError(f"{where}: the passphrase has fewer than {_SHORTEST} characters", "Take a longer one", USAGE)
    return passphrase


def seal(content: bytes, keys: Keys) -> bytes:
    """An age file (age-encryption.org/v1), which `age --decrypt` reads, too. Raises CliError for a bad key.

    Secret keys stand for their public ones, so that who may read it may write it again.
    """
    import pyrage  # noqa: PLC0415  (needed by few commands)

    if keys.passphrase:
        return bytes(pyrage.passphrase.encrypt(content, keys.passphrase))
    recipients = [*_each(keys.recipients, pyrage.x25519.Recipient.from_str, "--recipient")]
    recipients += [
        each.to_public() for each in _each(keys.identities, pyrage.x25519.Identity.from_str, "--identity-file")
    ]
    return bytes(pyrage.encrypt(content, recipients))


def unseal(content: bytes, keys: Keys, title: str) -> bytes:
    """What was sealed. Raises CliError for another key, and for a file that is no archive, cut or changed."""
    import pyrage  # noqa: PLC0415

    if not content.startswith(b"age-encryption.org/v1\n"):
        raise CliError(f"{title} is no archive of Nodewright: it is not encrypted with age", "Name another file")
    try:
        if keys.passphrase:
            return bytes(pyrage.passphrase.decrypt(content, keys.passphrase))
        identities = [*_each(keys.identities, pyrage.x25519.Identity.from_str, "--identity-file")]
        if not identities:
            raise CliError(f"{title} can't be read with public keys", "Name the secret key with --identity-file", USAGE)
        return bytes(pyrage.decrypt(content, identities))
    except pyrage.DecryptError as error:
        why = "the key is another one, or the file is cut or was changed"
        raise CliError(f"{title} can't be decrypted: {why}", "Look at the key first, then at the copy") from error


def _each(texts: Sequence[str], parse: Callable[[str], Any], option: str) -> list[Any]:
    """Keys as pyrage has them. What is wrong with a text is said without it: it may be a secret."""
    found = []
    for number, each in enumerate(texts, 1):
        try:
            found.append(parse(each))
        except Exception as error:  # pyrage has a class of its own for each kind of key
            raise CliError(
                f"{option}: key {number} is no X25519 key of age", "Make one with age-keygen", USAGE
            ) from error
    return found

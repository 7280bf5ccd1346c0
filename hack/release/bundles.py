"""Signatures by Sigstore: a bundle beside each artefact, made by an identity that a token proves, with no key to keep.

A bundle holds the signature, the certificate of ten minutes that binds it to the identity, the entry of a transparency
log and a signed time. So it is checked without a network, as long as the roots are known (ADR 0068).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cryptography.x509 import ObjectIdentifier, RFC822Name, SubjectAlternativeName, UniformResourceIdentifier

from hack.release.parts import ReleaseError

if TYPE_CHECKING:  # the library is imported where it is used: an image or an audit does without it
    from sigstore.models import Bundle, ClientTrustConfig
    from sigstore.oidc import IdentityToken

T = TypeVar("T")
SUFFIX = ".sigstore.json"
TOKEN = "SIGSTORE_IDENTITY_TOKEN"
"""The variable's name, as the program `sigstore` has it."""
SECONDS = 300
"""For all signatures. Each one takes a second or two: the log answers when it has published an entry."""
_ISSUER = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
"""The issuer of the token, in a certificate of Fulcio (github.com/sigstore/fulcio, docs/oid-info.md)."""
_LONGEST = 500
"""Characters of each cause of an error."""


@dataclass(frozen=True, slots=True)
class Instance:
    """``trust_config``: file with a ClientTrustConfig, None for the public Sigstore. ``token``: file with an identity
    token, None for ``$SIGSTORE_IDENTITY_TOKEN`` or the one that a CI system gives.
    """

    trust_config: Path | None = None
    token: Path | None = None


@dataclass(frozen=True, slots=True)
class Signed:
    """``bundles``: by their names. ``identity`` and ``issuer``: of the certificate, which a check has to name."""

    bundles: Mapping[str, bytes]
    identity: str
    issuer: str


def check(instance: Instance) -> None:
    """That there are roots and a token, before minutes of work. Raises ReleaseError."""
    trust(instance)
    token(instance)


def signed(artefacts: Mapping[str, bytes], instance: Instance) -> Signed:
    """A bundle for each artefact, each of them verified as strangers verify it. Raises ReleaseError."""
    from sigstore.sign import SigningContext  # noqa: PLC0415

    config, identity = trust(instance), token(instance)

    def sign() -> dict[str, Bundle]:
        with SigningContext.from_trust_config(config).signer(identity) as signer:
            return {name: signer.sign_artifact(data) for name, data in artefacts.items()}

    try:
        made = _in_time(sign)
    except TimeoutError:
        raise ReleaseError(f"Sigstore did not sign within {SECONDS} s: one of its services does not answer") from None
    except Exception as error:  # of four services and their client: they have no class in common
        raise ReleaseError(f"Sigstore did not sign: {_reason(error)}") from None
    expected = subject(next(iter(made.values())))
    _verify(artefacts, made, config, expected)
    return Signed({f"{name}{SUFFIX}": bundle.to_json().encode() for name, bundle in made.items()}, *expected)


def drop(folder: Path) -> None:
    """Bundles of an earlier release, which belong to other bytes."""
    for old in folder.glob(f"*{SUFFIX}"):
        old.unlink()


def trust(instance: Instance) -> ClientTrustConfig:
    """Whom to ask for certificates, entries and times, and which keys they answer with.

    Raises ReleaseError for a file that is no such thing, or where the public instance can't be asked for its own.
    """
    from sigstore.models import ClientTrustConfig  # noqa: PLC0415

    named = instance.trust_config
    try:
        config = ClientTrustConfig.from_json(named.read_text("utf-8")) if named else ClientTrustConfig.production()
        _ = config.signing_config, config.trusted_root  # each of them is read now
    except Exception as error:  # of files, of pydantic, of TUF and of the library itself
        where = f"--trust-config {named}" if named else "the public Sigstore (--trust-config names a private one)"
        raise ReleaseError(f"{where}: {_reason(error)}") from None
    return config


def token(instance: Instance) -> IdentityToken:
    """From the file, else the environment, else the CI system that this runs in: never from the command line, which
    other users of the machine can read. Raises ReleaseError if there is none, or one that is not valid now.
    """
    from sigstore.errors import Error  # noqa: PLC0415
    from sigstore.oidc import IdentityToken, detect_credential  # noqa: PLC0415

    given = os.environ.get(TOKEN, "").strip()
    where = f"${TOKEN}" if given else "the CI system's token"
    if instance.token:
        where = f"--identity-token-file {instance.token}"
    try:
        text = instance.token.read_text("ascii").strip() if instance.token else given or detect_credential()
        if text:
            return IdentityToken(text)
    except (OSError, UnicodeDecodeError, Error) as error:
        raise ReleaseError(f"{where}: {_reason(error)}") from None
    if instance.token:
        raise ReleaseError(f"{where} is empty")
    raise ReleaseError(f"there is no identity token: give --identity-token-file, set {TOKEN}, or run this in CI")


def subject(bundle: Bundle) -> tuple[str, str]:
    """Identity and issuer, as `sigstore verify identity` compares them. Raises ReleaseError unless it is one."""
    extensions = bundle.signing_certificate.extensions
    names = extensions.get_extension_for_class(SubjectAlternativeName).value
    found = [name.value for name in names if isinstance(name, RFC822Name | UniformResourceIdentifier)]
    if len(found) != 1:
        raise ReleaseError(f"the certificate is for {len(found)} addresses or URIs: it must be one")
    issuer = extensions.get_extension_for_oid(_ISSUER).value
    return found[0], issuer.public_bytes().decode()


def _verify(
    artefacts: Mapping[str, bytes], made: Mapping[str, Bundle], config: ClientTrustConfig, expected: tuple[str, str]
) -> None:
    """The client takes time and entry as the services give them, whether or not the roots know who signed those."""
    from sigstore.errors import Error  # noqa: PLC0415
    from sigstore.verify import Verifier, policy  # noqa: PLC0415

    verifier = Verifier(trusted_root=config.trusted_root)
    identity, issuer = expected
    for name, bundle in made.items():
        try:
            verifier.verify_artifact(artefacts[name], bundle, policy.Identity(identity=identity, issuer=issuer))
        except Error as error:
            raise ReleaseError(f"the bundle of {name} does not verify, nothing is released: {error}") from None


def _in_time(call: Callable[[], T]) -> T:
    """The client waits for ever for a service that takes a request and does not answer. Raises TimeoutError, and what
    ``call`` raises.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()  # a daemon does not keep the process
    return future.result(SECONDS)


def _reason(error: BaseException) -> str:
    """On one line, with what a service answered: the client leaves that out of its error."""
    text = " ".join(str(error).split())[:_LONGEST] or type(error).__name__
    answer = " ".join(getattr(getattr(error, "response", None), "text", "").split())[:_LONGEST]
    below = _reason(error.__cause__) if error.__cause__ else ""
    return ": ".join(part for part in (text, answer, "" if below in text else below) if part)

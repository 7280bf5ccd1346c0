"""A release is signed by a real Sigstore on this machine and checked as the page says.

Fulcio, CT log, Rekor and timestamp authority are the real programs, which `make e2e-sigstore` builds before it runs
this; only the issuer of tokens is of the tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.pinned import SIGSTORE
from hack.release import __main__ as release
from hack.release import bundles, making, proof
from hack.release.parts import ReleaseError, commit_time
from hack.sigstore.__main__ import IDENTITY
from hack.sigstore.instance import Instance
from hack.sigstore.issuer import URL, Issuer
from tests.realplane import lacking
from tests.release.test_bundles import PRIVATE, check

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sigstore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    if missing := [program.name for program in SIGSTORE if program.find() is None]:
        lacking(f"{', '.join(missing)} not found: run `make e2e-sigstore`, which builds what is missing")
    with Instance(tmp_path_factory.mktemp("sigstore")) as instance:
        yield instance


@pytest.fixture
def instance(sigstore: Instance, tmp_path: Path) -> bundles.Instance:
    token = tmp_path / "token"
    token.write_text(sigstore.issuer.token(IDENTITY))
    return bundles.Instance(sigstore.trust_config, token)


@pytest.fixture(scope="module")
def artefacts() -> dict[str, bytes]:
    made = making.distributions(commit_time())
    return {**made, proof.SUMS: proof.sums(made)}


def make(instance: bundles.Instance, out: Path) -> None:
    options = [f"--trust-config={instance.trust_config}", f"--identity-token-file={instance.token}", f"--out={out}"]
    assert release.main(["make", "--sigstore", *options]) == 0


def test_a_release_is_signed_and_its_users_can_check_it(
    instance: bundles.Instance, artefacts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "artefacts", lambda _: artefacts)
    once, again = tmp_path / "once", tmp_path / "again"
    make(instance, once)
    make(instance, again)
    for folder in (once, again):
        written = {path.name for path in folder.iterdir()}
        assert written == set(artefacts) | {f"{name}{bundles.SUFFIX}" for name in artefacts}
        done = check(folder, PRIVATE, IDENTITY=IDENTITY, ISSUER=URL, TRUST_CONFIG=str(instance.trust_config))
        assert done.returncode == 0, done.stderr
    for name, data in artefacts.items():
        assert (once / name).read_bytes() == (again / name).read_bytes() == data
        bundle = f"{name}{bundles.SUFFIX}"
        assert (once / bundle).read_bytes() != (again / bundle).read_bytes()


def test_the_check_refuses_an_artefact_that_was_changed_after_it_was_signed(
    instance: bundles.Instance, artefacts: dict[str, bytes], tmp_path: Path
) -> None:
    for name, data in {**artefacts, **bundles.signed(artefacts, instance).bundles}.items():
        (tmp_path / name).write_bytes(data)
    changed = {name: data + b"\n" for name, data in artefacts.items() if name != proof.SUMS}
    for name, data in {**changed, proof.SUMS: proof.sums(changed)}.items():
        (tmp_path / name).write_bytes(data)
    done = check(tmp_path, PRIVATE, IDENTITY=IDENTITY, ISSUER=URL, TRUST_CONFIG=str(instance.trust_config))
    assert done.returncode
    assert "digest mismatch" in done.stderr


def test_fulcio_takes_no_token_of_another_key(sigstore: Instance, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(Issuer().token(IDENTITY))
    with pytest.raises(ReleaseError, match=r"Sigstore did not sign: .*error processing the identity token"):
        bundles.signed({"a": b"a"}, bundles.Instance(sigstore.trust_config, tmp_path / "token"))


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("tsa", "Sigstore did not sign: bundle must contain an inclusion promise or signed timestamp"),
        ("rekor", "Sigstore did not sign: .*Connection refused"),
        ("fulcio", "Sigstore did not sign: .*Connection refused"),
    ],
)
def test_a_service_that_does_not_answer_is_an_error(
    service: str, message: str, sigstore: Instance, instance: bundles.Instance
) -> None:
    with sigstore.without(service), pytest.raises(ReleaseError, match=message):
        bundles.signed({"a": b"a"}, instance)


def test_a_service_that_never_answers_ends_the_release_in_time(
    sigstore: Instance, instance: bundles.Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fulcio asks a CT log that is down again and again, as long as its client waits."""
    monkeypatch.setattr(bundles, "SECONDS", 3)
    with (
        sigstore.without("tesseract"),
        pytest.raises(ReleaseError, match="did not sign within 3 s: one of its services does not answer"),
    ):
        bundles.signed({"a": b"a"}, instance)


@pytest.mark.parametrize(
    ("root", "message"),
    [("timestampAuthorities", "not enough sources of verified time"), ("tlogs", "invalid log entry: .*signature")],
)
def test_what_the_roots_do_not_know_is_not_released(
    sigstore: Instance, instance: bundles.Instance, tmp_path: Path, root: str, message: str
) -> None:
    """The services answer, and whoever checks could not tell that it was they."""
    other = Instance(tmp_path)
    other.write()
    config, unknown = (json.loads(each.trust_config.read_text()) for each in (sigstore, other))
    config["trustedRoot"][root] = unknown["trustedRoot"][root]
    (tmp_path / "mixed.json").write_text(json.dumps(config))
    with pytest.raises(ReleaseError, match=f"the bundle of a does not verify, nothing is released: .*{message}"):
        bundles.signed({"a": b"a"}, bundles.Instance(tmp_path / "mixed.json", instance.token))

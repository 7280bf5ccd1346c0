"""Bundles of a real Sigstore under the documented check, and what stops a signature before it begins. No network.

``python -m hack.sigstore tests/release/signed`` made the bundles; `make e2e-sigstore` makes others likewise.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sigstore.oidc

from hack.release import __main__ as release
from hack.release import bundles, proof
from hack.release.parts import ReleaseError
from hack.sigstore import __main__ as signing
from hack.sigstore.instance import Instance as Sigstore
from hack.sigstore.issuer import Issuer
from tests.docs.pages import ROOT

SIGNED = Path(__file__).parent / "signed"
PAGE = ROOT / "docs" / "releasing.md"
PUBLIC, PRIVATE = "If the public Sigstore signed it", "If a private Sigstore signed it"


def documented_check(heading: str) -> str:
    """The commands below a line of the page that begins so."""
    found = re.search(rf"^{heading}.*\n\n((?:    [^\n]+\n)+)", PAGE.read_text(), re.MULTILINE)
    assert found, heading
    return found[1]


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SIGNED, tmp_path / "downloaded"))


def check(folder: Path, heading: str = PRIVATE, **expected: str) -> subprocess.CompletedProcess[str]:
    """As a person does it, with the program `sigstore` on the PATH and a home without anything in it."""
    signed_by = json.loads((SIGNED / signing.SIGNED_BY).read_text())
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder.parent),
        "COLUMNS": "1000",
        "IDENTITY": signed_by["identity"],
        "ISSUER": signed_by["issuer"],
        "TRUST_CONFIG": str(SIGNED / signing.TRUST_CONFIG),
        **expected,
    }
    command = ["bash", "-e", "-c", documented_check(heading)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_documented_check_accepts_what_was_signed(downloaded: Path) -> None:
    done = check(downloaded)
    assert done.returncode == 0, done.stderr
    assert f"OK: {proof.SUMS}" in done.stderr
    assert "install.yaml: OK" in done.stdout


def test_the_documented_check_refuses_an_artefact_that_was_changed(downloaded: Path) -> None:
    (downloaded / "install.yaml").write_text("kind: Other\n")
    done = check(downloaded)
    assert done.returncode
    assert f"OK: {proof.SUMS}" in done.stderr
    assert "install.yaml: FAILED" in done.stdout


def test_the_documented_check_refuses_changed_checksums(downloaded: Path) -> None:
    (downloaded / "install.yaml").write_text("kind: Other\n")
    (downloaded / proof.SUMS).write_bytes(proof.sums({"install.yaml": b"kind: Other\n"}))
    done = check(downloaded)
    assert done.returncode
    assert f"FAIL: {proof.SUMS}" in done.stderr
    assert "digest mismatch" in done.stderr


def test_the_documented_check_refuses_the_bundle_of_another_file(downloaded: Path) -> None:
    shutil.copy(downloaded / f"install.yaml{bundles.SUFFIX}", downloaded / f"{proof.SUMS}{bundles.SUFFIX}")
    done = check(downloaded)
    assert done.returncode
    assert "digest mismatch" in done.stderr


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"IDENTITY": "somebody@nodewright.example"}, "Certificate's SANs do not match somebody@nodewright.example"),
        ({"ISSUER": "https://issuer.example"}, "Certificate's OIDCIssuer does not match"),
    ],
)
def test_the_documented_check_refuses_another_signer(downloaded: Path, expected: dict[str, str], message: str) -> None:
    done = check(downloaded, **expected)
    assert done.returncode
    assert message in done.stderr


def test_the_documented_check_refuses_what_another_sigstore_signed(downloaded: Path, tmp_path: Path) -> None:
    """No time of a bundle counts that the known roots did not sign, those of the public or of a private one."""
    other = Sigstore(tmp_path)
    other.write()
    for done in (check(downloaded, PUBLIC), check(downloaded, TRUST_CONFIG=str(other.trust_config))):
        assert done.returncode
        assert f"FAIL: {proof.SUMS}" in done.stderr
        assert "not enough sources of verified time" in done.stderr


def test_the_documented_check_refuses_to_do_without_a_bundle(downloaded: Path) -> None:
    (downloaded / f"{proof.SUMS}{bundles.SUFFIX}").unlink()
    done = check(downloaded)
    assert done.returncode
    assert f"Missing verification materials for {proof.SUMS}" in done.stderr


def test_each_artefact_and_the_checksums_have_a_bundle_that_no_checksum_holds() -> None:
    artefacts = {path.name for path in SIGNED.iterdir() if not path.name.endswith(".json")}
    assert {f"{name}{bundles.SUFFIX}" for name in artefacts} == {
        path.name for path in SIGNED.glob(f"*{bundles.SUFFIX}")
    }
    listed = {line.split()[1] for line in (SIGNED / proof.SUMS).read_text().splitlines()}
    assert listed == artefacts - {proof.SUMS}


def test_what_the_tests_check_does_not_end(downloaded: Path) -> None:
    """Roots without an end: a bundle is checked at its signed time, at which its certificate was valid."""
    config = json.loads((downloaded / signing.TRUST_CONFIG).read_text())
    spans = re.findall(r'"valid_?for": (\{.*?\})', json.dumps(config), re.IGNORECASE)
    assert len(spans) > 5
    assert not [span for span in spans if "end" in span]


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Of ``make``, which says it before it makes anything."""
    assert release.main(["make", *arguments]) == 1
    return capsys.readouterr().err


@pytest.fixture
def without_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bundles.TOKEN, raising=False)
    monkeypatch.setattr(sigstore.oidc, "detect_credential", lambda: None)


TRUST_CONFIG = f"--trust-config={SIGNED / signing.TRUST_CONFIG}"


@pytest.mark.usefixtures("without_token")
def test_without_a_token_nothing_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    message = refusal(capsys, "--sigstore", TRUST_CONFIG)
    assert "there is no identity token: give --identity-token-file, set SIGSTORE_IDENTITY_TOKEN" in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("", "is empty"),
        ("no-token-at-all", "Identity token is malformed or missing claims: Not enough segments"),
        ("schlüssel", "can't decode"),
    ],
)
def test_a_token_file_that_holds_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    answer = refusal(capsys, "--sigstore", TRUST_CONFIG, f"--identity-token-file={file}")
    assert f"--identity-token-file {file}" in answer
    assert message in answer
    assert not text or text not in answer


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"exp": 1_700_000_000, "iat": 1_699_999_000}, "Signature has expired"),
        ({"aud": "another"}, "Audience doesn't match"),
    ],
)
def test_a_token_that_is_not_valid_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, claims: dict[str, object], message: str
) -> None:
    token = Issuer().token("release@nodewright.example", **claims)
    monkeypatch.setenv(bundles.TOKEN, token)
    with pytest.raises(ReleaseError, match=rf"\$SIGSTORE_IDENTITY_TOKEN: .*{message}") as refused:
        bundles.token(bundles.Instance())
    assert token not in str(refused.value)


def test_a_token_is_taken_from_the_file_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    issuer, file = Issuer(), tmp_path / "token"
    file.write_text(f"{issuer.token('file@nodewright.example')}\n")
    monkeypatch.setenv(bundles.TOKEN, issuer.token("environment@nodewright.example"))
    assert bundles.token(bundles.Instance(token=file)).identity == "file@nodewright.example"
    assert bundles.token(bundles.Instance()).identity == "environment@nodewright.example"


def test_without_file_and_variable_the_ci_system_is_asked_for_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """As GitHub's runner has it: a URL and a login to it are in the environment."""
    issuer = Issuer()
    issuer.pages["/for-the-job"] = {"value": issuer.token("ci@nodewright.example")}
    monkeypatch.delenv(bundles.TOKEN, raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "login")
    with issuer:
        monkeypatch.setenv(
            "ACTIONS_ID_TOKEN_REQUEST_URL", f"http://127.0.0.1:{issuer.port}/for-the-job?api-version=2.0"
        )
        assert bundles.token(bundles.Instance()).identity == "ci@nodewright.example"
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_URL")
    with pytest.raises(ReleaseError, match=r"the CI system's token: .*insufficient OIDC token permissions"):
        bundles.token(bundles.Instance())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("{", "Invalid JSON"),
        ("{}", "Field required"),
    ],
)
def test_a_trust_config_that_is_none_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    file = tmp_path / "trust.json"
    if text is not None:
        file.write_text(text)
    answer = refusal(capsys, "--sigstore", f"--trust-config={file}")
    assert f"--trust-config {file}" in answer
    assert message in answer


@pytest.mark.parametrize("option", ["--trust-config=a", "--identity-token-file=a"])
def test_options_of_sigstore_without_it_are_refused(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert "are for --sigstore, which is not given" in refusal(capsys, option)


def test_bundles_of_an_earlier_release_do_not_stay(tmp_path: Path) -> None:
    for name in ("a.whl", f"a.whl{bundles.SUFFIX}", "wheel.cdx.json"):
        (tmp_path / name).write_text("")
    bundles.drop(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a.whl", "wheel.cdx.json"}


def test_a_key_and_sigstore_sign_the_same_files() -> None:
    made = {"a.whl": b"", proof.SUMS: b"", proof.SIGNATURE: b"", proof.PUBLIC_KEY: b""}
    assert set(proof.signable(made)) == {"a.whl", proof.SUMS}

"""The parts of a release that need nothing fetched: trees, layout, lists, audit, notes, and the check of strangers."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from hack.release import audit, inventory, oci, proof, sbom, tree, version
from hack.release.dependencies import SITE
from hack.release.parts import ReleaseError
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "releasing.md"


def test_a_tar_depends_on_the_tree_alone() -> None:
    one = {"b/c": tree.file("x"), "a": tree.link("b/c"), "tmp": tree.folder(0o1777)}
    other = dict(reversed(one.items()))
    assert tree.to_tar(one, 5) == tree.to_tar(other, 5)
    assert tree.from_tar(tree.to_tar(one, 5)) == {**one, "b": tree.folder()}
    with tarfile.open(fileobj=io.BytesIO(tree.to_tar(one, 5))) as archive:
        assert {(m.mtime, m.uid, m.gid, m.uname) for m in archive} == {(5, 0, 0, "")}


@pytest.mark.parametrize("architectures", [("amd64",), ("amd64", "arm64")])
def test_a_layout_is_complete_and_says_what_is_to_be_pulled(architectures: tuple[str, ...]) -> None:
    layer = tree.zipped(tree.to_tar({"f": tree.file("x")}, 0))
    platforms = [oci.Platform(each, [("made", layer)]) for each in architectures]
    digest, archive = oci.layout(platforms, oci.Described("r.example/n:1", {"User": "1:1"}, 0))
    blobs = {path.removeprefix("blobs/"): e.data for path, e in tree.from_tar(archive).items() if e.kind == tree.FILE}
    assert all(proof._sha256(data) == name[7:] for name, data in blobs.items() if name.startswith("sha256/"))
    (top,) = json.loads(blobs["index.json"])["manifests"]
    assert top["digest"] == digest
    found = json.loads(blobs[digest.replace(":", "/")])
    manifests = found.get("manifests") or [top]
    assert tuple(each["platform"]["architecture"] for each in manifests) == architectures
    manifest = json.loads(blobs[manifests[0]["digest"].replace(":", "/")])
    config = json.loads(blobs[manifest["config"]["digest"].replace(":", "/")])
    assert config["rootfs"]["diff_ids"] == [f"sha256:{proof._sha256(gzip.decompress(layer))}"]


def _metadata(name: str, *lines: str) -> tree.Tree:
    text = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, "", "License: in the text"])
    return {f"{SITE}/{name}-1.0.dist-info/METADATA": tree.file(text)}


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: Apache-2.0 OR BSD-3-Clause"], "Apache-2.0 OR BSD-3-Clause"),
        (["License: Apache License 2.0"], "Apache-2.0"),
        (["License: BSD", "Classifier: License :: OSI Approved :: MIT License"], "BSD"),
        (["Classifier: License :: OSI Approved :: MIT License"], "MIT"),
    ],
)
def test_a_licence_is_read_where_packages_name_it(lines: list[str], licence: str) -> None:
    items = inventory.python_items(_metadata("some_thing", *lines))
    assert [(item.licence, item.purl) for item in items] == [(licence, "pkg:pypi/some-thing@1.0")]
    inventory.check(items)


@pytest.mark.parametrize(
    ("text", "licence"),
    [("\nThe MIT License (MIT)\n\nCopyright", "MIT"), ("GNU GENERAL PUBLIC LICENSE", ""), (None, "")],
)
def test_a_package_that_only_brings_its_licence_is_known_by_its_title(text: str | None, licence: str) -> None:
    files = _metadata("thing", "License-File: LICENSE")
    if text is not None:
        files[f"{SITE}/thing-1.0.dist-info/licenses/LICENSE"] = tree.file(text)
    assert [item.licence for item in inventory.python_items(files)] == [licence]


@pytest.mark.parametrize(
    "lines", [[], ["License-Expression: GPL-3.0-only"], ["License-Expression: MIT AND AGPL-3.0-only"]]
)
def test_a_licence_that_is_not_allowed_stops_the_release_and_names_the_package(lines: list[str]) -> None:
    with pytest.raises(ReleaseError, match=r"some_thing 1\.0: (no licence named|.*GPL)"):
        inventory.check(inventory.python_items(_metadata("some_thing", *lines)))


def _carried(name: str, *lines: str) -> tree.Tree:
    return {path.replace(SITE, f"{SITE}/carrier/_vendor"): entry for path, entry in _metadata(name, *lines).items()}


def test_a_package_within_another_is_listed_as_such_beside_its_own_version() -> None:
    line = "License-Expression: MIT"
    alone, within = inventory.python_items(_metadata("thing", line) | _carried("thing", line))
    assert (alone.purl, alone.within, within.purl, within.within) == (within.purl, "", alone.purl, "carrier")
    listed = json.loads(sbom.cyclonedx("library", "n", "1.0", [alone, within], 0))["components"]
    assert [each["bom-ref"] for each in listed] == ["pkg:pypi/thing@1.0", "pkg:pypi/thing@1.0#carrier"]
    assert "(within carrier)" not in inventory.table([alone])
    assert "MIT (within carrier)" in inventory.table([within])


def test_the_lesser_gpl_is_allowed_within_another_package_alone_and_the_gpl_nowhere() -> None:
    line = "License: LGPLv3"
    inventory.check(inventory.python_items(_carried("thing", line)))
    with pytest.raises(ReleaseError, match=r"thing 1\.0: LGPL-3\.0-only"):
        inventory.check(inventory.python_items(_metadata("thing", line)))
    with pytest.raises(ReleaseError, match=r"thing 1\.0 \(within carrier\): GPL-3\.0-only"):
        inventory.check(inventory.python_items(_carried("thing", "License-Expression: GPL-3.0-only")))


def test_the_list_of_contents_is_cyclonedx() -> None:
    items = [
        inventory.Item("pypi", "packaging", "26.3", "Apache-2.0 OR BSD-2-Clause"),
        inventory.Item("pypi", "packaging", "26.3", "Apache-2.0 OR BSD-2-Clause", within="setuptools"),
        inventory.Item("pypi", "numpy", "2.3", "BSD-3-Clause AND MIT"),
        inventory.Item("deb", "libstdc++6", "12.2.0-14+deb12u1", "GPL-3+, LGPL", "a" * 64, "amd64"),
    ]
    text = sbom.cyclonedx("container", "nodewright", "1.0", items, 1_700_000_000)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.decode()) is None
    assert text == sbom.cyclonedx("container", "nodewright", "1.0", items[::-1], 1_700_000_000)
    assert b"pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64&distro=bookworm" in text


def _advisory(folder: Path, **affected: object) -> None:
    what = {"package": {"ecosystem": "PyPI", "name": "Some.Thing"}, **affected}
    (folder / "PYSEC-1.json").write_text(json.dumps({"id": "PYSEC-1", "summary": "it breaks", "affected": [what]}))


@pytest.mark.parametrize(
    ("affected", "is_found"),
    [
        ({"versions": ["1.2"]}, True),
        ({"versions": ["1.3"]}, False),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2"}]}]}, False),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.10"}]}]}, True),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "1.2"}, {"last_affected": "1.2"}]}]}, True),
        ({"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "1.3"}]}]}, False),
        ({"ranges": [{"type": "GIT", "events": [{"introduced": "0"}]}]}, False),
    ],
)
def test_the_audit_follows_the_schema_of_advisories(
    tmp_path: Path, affected: dict[str, object], is_found: bool
) -> None:
    _advisory(tmp_path, **affected)
    found = audit.findings("other==3\nsome-thing==1.2 \\\n    --hash=sha256:00\n", tmp_path)
    assert found == (["some-thing 1.2: PYSEC-1: it breaks"] if is_found else [])


def test_an_audit_without_advisories_is_none(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="has no advisories"):
        audit.findings("some-thing==1.2\n", tmp_path)


@pytest.mark.parametrize("form", ["zip", "one", "list"])
def test_the_audit_reads_the_export_as_it_is_downloaded(tmp_path: Path, form: str) -> None:
    _advisory(tmp_path, versions=["1.2"])
    advisory = tmp_path / "PYSEC-1.json"
    database = advisory if form == "one" else tmp_path / form
    if form == "zip":
        with zipfile.ZipFile(database, "w") as archive:
            archive.write(advisory, "PYSEC-1.json")
    if form == "list":
        database.write_text(f"[{advisory.read_text()}]")
    assert audit.findings("some-thing==1.2\n", database) == ["some-thing 1.2: PYSEC-1: it breaks"]


@pytest.mark.parametrize("text", ["", "{", '{"affected": 3}', "3", '{"affected": [{"package": 1}]}'])
def test_an_advisory_that_cant_be_read_is_named_and_not_skipped(tmp_path: Path, text: str) -> None:
    _advisory(tmp_path, versions=["9"])
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(ReleaseError, match=r"odd\.json is no advisory"):
        audit.findings("some-thing==1.2\n", tmp_path)


def test_notes_are_the_section_of_the_version() -> None:
    text = "# Changelog\n\n## Unreleased\n- new\n\n## 0.1.0 (2026-01-01)\n- old\n"
    assert version.notes(text, "0.1.0", tagged=True) == "# Nodewright 0.1.0\n\n- old\n"
    assert version.notes(text, "0.1.0", tagged=False) == "# Nodewright 0.1.0 (not released)\n\n- new\n"
    with pytest.raises(ReleaseError, match=r"no section `## 0\.2\.0`"):
        version.notes(text, "0.2.0", tagged=True)


def test_a_tag_that_is_not_the_programs_version_is_refused(tmp_path: Path) -> None:
    run = ["git", "-c", "user.name=n", "-c", "user.email=n@example"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["tag", "v9.9.9"]):
        subprocess.run([*run, *command], cwd=tmp_path, check=True)
    with pytest.raises(ReleaseError, match=r"the tag is v9\.9\.9"):
        version.released(tmp_path)


def documented_check() -> str:
    found = re.search(r"## Check what you downloaded\n(?s:.*?)\n\n((?:    [^\n]+\n)+)", PAGE.read_text())
    assert found
    assert found[1].count("\n") == 2, "the two commands, and nothing else"
    return found[1]


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True)
    folder = tmp_path / "downloaded"
    folder.mkdir()
    made = {"a.whl": b"wheel", "install.yaml": b"yaml"}
    made[proof.SUMS] = proof.sums(made)
    for name, data in {**made, **proof.signed(made[proof.SUMS], key)}.items():
        (folder / name).write_bytes(data)
    return folder


def _check(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-e", "-c", documented_check()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_documented_check_accepts_what_was_made(downloaded: Path) -> None:
    done = _check(downloaded)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Signature Verified Successfully" in done.stdout


def test_the_documented_check_refuses_an_artefact_that_was_changed(downloaded: Path) -> None:
    (downloaded / "a.whl").write_bytes(b"whee1")
    done = _check(downloaded)
    assert done.returncode
    assert "a.whl: FAILED" in done.stdout


def test_the_documented_check_refuses_changed_checksums(downloaded: Path) -> None:
    (downloaded / "a.whl").write_bytes(b"whee1")
    (downloaded / proof.SUMS).write_bytes(proof.sums({"a.whl": b"whee1", "install.yaml": b"yaml"}))
    assert _check(downloaded).returncode


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "x25519", "-out", str(key)], check=True)
    with pytest.raises(ReleaseError, match="no Ed25519 key"):
        proof.signed(b"", key)
    with pytest.raises(ReleaseError, match="FileNotFoundError"):
        proof.signed(b"", tmp_path / "none")

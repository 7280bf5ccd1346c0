"""Manual pages, completions and the plugin for krew: written from the parser and the wheel, and of use as they are."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.packaging.moving_in import FOLDER_OF_SHARE
from hack.release import krew, making, manual, shared, tree
from hack.release.parts import ReleaseError
from nodewright.cli.main import COMMANDS, PLUGIN
from tests.docs.pages import ROOT

WHEN = 1_700_000_000


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: text.decode() for name, text in manual.pages("1.2.3", WHEN).items()}


def test_each_command_has_a_manual_page_and_names_those_within_it(pages: dict[str, str]) -> None:
    assert {f"nodewright-{name}.1" for name in COMMANDS} | {"nodewright.1"} <= set(pages)
    assert r".BR nodewright\-rollout\-undo (1)" in pages["nodewright-rollout.1"]
    assert all(rf"nodewright\-{name} (1)" in pages["nodewright.1"] for name in COMMANDS if "_" not in name)


def test_a_page_has_what_the_help_has(pages: dict[str, str]) -> None:
    undo = pages["nodewright-rollout-undo.1"]
    assert '"2023-11-14" "nodewright 1.2.3"' in undo
    assert ".B \\-\\-to\\-revision N\nWhich one; 0: the one before." in undo
    assert ".SH ARGUMENTS\n.TP\n.B NAME" in undo


def test_no_text_of_the_help_is_read_as_a_request_of_roff(pages: dict[str, str]) -> None:
    ours = re.compile(r"^\.(TH|SH|TP|PP|B|BR)( |$)")
    odd = [line for text in pages.values() for line in text.splitlines() if line[:1] in {".", "'"}]
    assert [line for line in odd if not ours.match(line)] == []
    assert manual._plain(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert manual._plain("a\\b\n.c") == "a\\eb .c"


def test_completions_lie_where_shells_load_them_by_themselves() -> None:
    files = shared.files("1.2.3", WHEN)
    assert b"complete" in files["bash-completion/completions/nodewright"]
    assert files["zsh/site-functions/_nodewright"].startswith(b"#compdef nodewright\n")
    assert b"complete --command nodewright" in files["fish/vendor_completions.d/nodewright.fish"]


def test_a_shell_that_loads_the_file_completes_commands(tmp_path: Path) -> None:
    script = tmp_path / "nodewright"
    script.write_text(shared.completion("bash"))
    ask = "COMP_WORDS=(nodewright roll); COMP_CWORD=1; _nodewright_completion nodewright"
    line = f'source {script}; complete -p nodewright >/dev/null; {ask}; echo "${{COMPREPLY[@]}}"'
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", line], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["rollout"]


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """As krew unpacks it."""
    made = krew.artefacts("1.2.3", b"wheel", WHEN)
    with tarfile.open(fileobj=io.BytesIO(made["nodewright-krew-1.2.3.tar.gz"])) as archive:
        archive.extractall(tmp_path / "plugin", filter="data")
    return tmp_path / "plugin" / PLUGIN


def _run(plugin: Path, tools: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """With these programs on the PATH and no others but those of the system that the launcher needs."""
    folder = plugin.parent.parent / "bin"
    folder.mkdir()
    for name, text in tools.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    for name in ("dirname", "readlink"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return subprocess.run(
        [str(plugin), "status", "-n", "a b"], env={"PATH": str(folder)}, capture_output=True, text=True, check=False
    )


def test_the_manifest_names_the_archive_and_what_starts_in_it() -> None:
    made = krew.artefacts("1.2.3", b"wheel", WHEN, "https://e.example/v1.2.3/")
    manifest: Any = yaml.safe_load(made[krew.MANIFEST])
    (platform,) = manifest["spec"]["platforms"]
    archive = made["nodewright-krew-1.2.3.tar.gz"]
    assert platform["uri"] == "https://e.example/v1.2.3/nodewright-krew-1.2.3.tar.gz"
    assert platform["sha256"] == hashlib.sha256(archive).hexdigest()
    assert tree.from_tar(gzip.decompress(archive))[platform["bin"]].mode == 0o755
    assert (manifest["metadata"]["name"], manifest["spec"]["version"]) == ("nodewright", "v1.2.3")
    assert len(manifest["spec"]["shortDescription"]) <= 50


@pytest.mark.parametrize(
    "tools", [{"nodewright": 'echo "own: $@"', "uv": "exit 9"}, {"uv": 'echo "$@"'}, {"pipx": 'echo "$@"'}]
)
def test_the_plugin_starts_the_program_by_what_is_there(plugin: Path, tools: dict[str, str]) -> None:
    done = _run(plugin, tools)
    wheel = plugin.parent / "nodewright-1.2.3-py3-none-any.whl"
    starts = {
        "nodewright": "own:",
        "uv": f"tool run --from {wheel} nodewright",
        "pipx": f"run --spec {wheel} nodewright",
    }
    assert done.stdout == f"{starts[next(iter(tools))]} status -n a b\n", done.stderr


def test_the_plugin_says_what_it_lacks(plugin: Path) -> None:
    done = _run(plugin, {})
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs nodewright, uv or pipx" in done.stderr


def test_a_release_of_files_that_differ_from_the_commit_is_refused(tmp_path: Path) -> None:
    run = ["git", "-c", "user.name=n", "-c", "user.email=n@example"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*run, *command], cwd=tmp_path, check=True)
    assert len(making.clean_commit(tmp_path)) == 40
    (tmp_path / "new.py").write_text("")
    with pytest.raises(ReleaseError, match=r"commit first: 1 files differ .* new\.py"):
        making.clean_commit(tmp_path)


@pytest.mark.e2e
def test_wheel_and_sdist_of_a_release_bring_pages_and_completions_and_no_tests(tmp_path: Path) -> None:
    made = making.distributions(WHEN)
    wheel = next(data for name, data in made.items() if name.endswith(".whl"))
    sdist = next(data for name, data in made.items() if name.endswith(".tar.gz"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        names = set(archive.namelist())
    assert {f"nodewright-0.1.0.data/data/share/{path}" for path in shared.files("0.1.0", WHEN)} <= names
    with tarfile.open(fileobj=io.BytesIO(sdist)) as unpacked:
        unpacked.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    tops = {path.name for path in source.iterdir()}
    assert {"share", "nodewright", "api", "hack"} <= tops
    assert tops & {"tests", "docs"} == set()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    without = {name: value for name, value in os.environ.items() if name != FOLDER_OF_SHARE}
    subprocess.run(
        command, cwd=source, env={**without, "SOURCE_DATE_EPOCH": str(WHEN)}, check=True, capture_output=True
    )
    assert (tmp_path / "dist" / "nodewright-0.1.0-py3-none-any.whl").read_bytes() == wheel
    assert ROOT not in source.parents

"""The Containerfile without a container engine: its sources exist, and its own commands make a program that works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.packaging.build_hook import SHARED
from hack.packaging.moving_in import MOVED
from nodewright.crds import load_crds
from tests.docs.pages import ROOT

INSTRUCTION = re.compile(r"^([A-Z]+)\s+(.*)$")
PLACES = re.compile(r"(?<![\w/.-])/(build|opt/nodewright|dist)\b")
PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")


def instructions() -> list[tuple[str, str]]:
    lines = (ROOT / "Containerfile").read_text().splitlines()
    return [(found[1], found[2]) for line in lines if (found := INSTRUCTION.match(line))]


def copied() -> Iterator[tuple[str, str]]:
    """From the context into the build stage: (source, target)."""
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            yield from ((source, target) for source in sources)


def pins(lock: str) -> dict[str, str]:
    found = map(PIN.match, (ROOT / lock).read_text().splitlines())
    return {pin[1]: pin[2] for pin in found if pin}


def test_what_it_copies_exists_and_is_not_ignored() -> None:
    sources = [source for source, _ in copied()]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    kept = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert kept == set(sources)


def test_everything_that_the_wheel_is_made_of_is_copied() -> None:
    assert {*MOVED, *SHARED, "nodewright", "hack/packaging"} <= {source for source, _ in copied()}


def test_both_stages_have_one_base_which_names_no_host() -> None:
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert bases == ["${PYTHON}", "${PYTHON}"]
    (argument,) = [rest for word, rest in instructions() if word == "ARG"]
    assert re.fullmatch(r"PYTHON=[a-z]+:[\w.-]+", argument)


def test_it_runs_as_the_user_that_the_deployment_names() -> None:
    (user,) = [rest for word, rest in instructions() if word == "USER"]
    deployment = yaml.safe_load((ROOT / "deploy/controllers/deployment.yaml").read_text())
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
    assert context["runAsUser"] != 0


def test_the_image_has_the_locked_dependencies_and_no_tools() -> None:
    runtime, every = pins("requirements-runtime.lock"), pins("requirements.lock")
    assert runtime.items() <= every.items()
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split(r"[<>=\[;]", each)[0].strip() for each in wanted}
    assert names <= set(runtime), "run `make lock`"
    assert not {"pytest", "mypy", "ruff", "hypothesis"} & set(runtime)


@pytest.mark.slow
def test_its_own_commands_install_a_program_that_works(tmp_path: Path) -> None:
    source, program = tmp_path / "src", tmp_path / "opt" / "nodewright"
    source.mkdir()
    for word, rest in instructions():
        if word == "FROM" and " AS " not in rest:
            break
        if word == "COPY":
            _copy(rest, source)
        if word == "RUN":
            command = PLACES.sub(lambda found: str(tmp_path / found[1]), rest)
            done = _run(command, source, shell=True)
            assert done.returncode == 0, f"{command}\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
    assert "nodewright" in _says(program, "bin/nodewright", "version")
    assert "--leader-elect" in _says(program, "bin/nodewright", "run", "--help")
    asks = (
        "from nodewright.crds import load_crds; from nodewright.providers.base.registry import Registry;"
        "print(len(load_crds()), [r.name for r in Registry.installed().registrations()])"
    )
    assert _says(program, "bin/python", "-c", asks).strip() == f"{len(load_crds())} ['openstack', 'simulated', 'ssh']"
    assert not list(program.glob("lib/*/site-packages/pip")), "no tools in the image"


def _copy(rest: str, into: Path) -> None:
    *sources, target = rest.split()
    for name in sources:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, into / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, into / target)


def _says(program: Path, binary: str, *arguments: str) -> str:
    done = _run([str(program / binary), *arguments], Path("/"))
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(command: str | list[str], folder: Path, shell: bool = False) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        command, shell=shell, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )

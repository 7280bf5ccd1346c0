"""The wheel: everything lies below ``nodewright`` there, whatever else is called ``api`` or ``providers``."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from hack.packaging.moving_in import MOVED, moved_in
from tests.docs.pages import ROOT

SECONDS = 900


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As an installer leaves it, beside packages of somebody else with the names that ours have in the repository."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for name in MOVED:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('this is somebody else')\n")
    return folder


def _python(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the wheel and its dependencies alone: ``-S`` leaves out the editable install of the repository."""
    libraries = sysconfig.get_paths()["purelib"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), libraries]), "COLUMNS": "80"}
    command = [sys.executable, "-S", *arguments]
    return subprocess.run(
        command, cwd=site, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_it_installs_one_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"nodewright", "nodewright-0.1.0.dist-info"}
    assert {f"nodewright/{name}/__init__.py" for name in MOVED} <= set(names)
    for needed in ("deploy/base/kustomization.yaml", "deploy/monitoring/dashboard.json", "examples/machineset.yaml"):
        assert f"nodewright/share/{needed}" in names
    assert not [name for name in names if "__pycache__" in name]


def test_two_builds_have_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_no_module_of_it_imports_the_names_of_the_repository(site: Path) -> None:
    for path in (site / "nodewright").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else found
            assert not [name for name in found if name.split(".")[0] in MOVED], path


@pytest.mark.e2e
def test_the_whole_demo_runs_from_it_beside_a_foreign_api_package(site: Path) -> None:
    done = _python(site, "-m", "nodewright", "demo")
    assert done.returncode == 0, done.stderr
    assert "nothing is left" in done.stdout


def test_its_providers_are_found(site: Path) -> None:
    asks = (
        "from nodewright.providers.base.registry import Registry\n"
        "found = Registry.installed()\n"
        "print([r.name for r in found.registrations()], found.broken)\n"
    )
    done = _python(site, "-c", asks)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("] ")[0] + "]" == "['openstack', 'simulated', 'ssh']", done.stdout


def test_every_module_of_it_can_be_loaded(site: Path) -> None:
    program = """
import importlib, pkgutil, sys, nodewright
failed = []
for module in pkgutil.walk_packages(nodewright.__path__, "nodewright."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except Exception as error:
            failed.append(f"{module.name}: {error!r}")
print("\\n".join(failed))
print(len(sys.modules))
"""
    done = _python(site, "-c", program)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) > 800
    assert done.stdout.split()[:-1] == [], done.stdout


@pytest.mark.parametrize(
    ("source", "moved"),
    [
        ("from api.names import GROUP\n", "from nodewright.api.names import GROUP\n"),
        ("from api import names\n", "from nodewright.api import names\n"),
        (
            "if x:\n    from providers.base import a  # noqa\n",
            "if x:\n    from nodewright.providers.base import a  # noqa\n",
        ),
        (
            "from controllers.kernel.refs import (\n    A,\n    B,\n)\n",
            "from nodewright.controllers.kernel.refs import (\n    A,\n    B,\n)\n",
        ),
        ("é = 1; from api.x import y\n", "é = 1; from nodewright.api.x import y\n"),
        ("from apis.x import api\n", "from apis.x import api\n"),
        ("from . import api\n", "from . import api\n"),
        ("text = 'from api import x'\n", "text = 'from api import x'\n"),
        ("import apiary\n", "import apiary\n"),
    ],
)
def test_imports_are_named_anew(source: str, moved: str) -> None:
    assert moved_in(source, "a.py") == moved


@pytest.mark.parametrize("source", ["import api\n", "import api.names\n", "x = 1\nimport os, providers.base\n"])
def test_an_import_that_binds_a_moved_name_is_refused_with_its_line(source: str) -> None:
    line = source.count("\n")
    with pytest.raises(ValueError, match=rf"a\.py:{line}: write `from … import`"):
        moved_in(source, "a.py")

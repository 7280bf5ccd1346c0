"""The chart renders what kustomize renders, for whatever namespace, and its schema refuses what is no value of it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hack.pinned import HELM
from hack.release import chart
from hack.release.tree import Tree
from nodewright import __version__
from nodewright.cli.installation.manifests import Choice, render

pytestmark = [pytest.mark.kubectl, pytest.mark.slow]
IMAGE = f"nodewright:{__version__}"
Objects = list[dict[str, Any]]


@pytest.fixture(scope="module")
def files(kubectl_binary: Path) -> Tree:
    return chart.files_of(__version__)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, files: Tree) -> Path:
    file = tmp_path_factory.mktemp("chart") / "chart.tgz"
    file.write_bytes(chart.packed(files, 0))
    return file


@pytest.fixture(scope="module")
def helm_binary() -> Path:
    if os.environ.get("CI"):
        return HELM.ensure()
    found = HELM.find()
    if found is None:
        pytest.skip("helm is missing: run `make helm`")
    return found


def _run(helm_binary: Path, packed: Path, namespace: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(helm_binary), "template", "any", str(packed), "-n", namespace, "--kube-version=1.36.0", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def _rendered(helm_binary: Path, packed: Path, namespace: str, *flags: str) -> Objects:
    done = _run(helm_binary, packed, namespace, *flags)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]


def _sorted(objects: Objects) -> list[str]:
    return sorted(json.dumps(obj, sort_keys=True) for obj in objects)


def _of_kustomize(*components: str) -> Objects:
    """Without the release's own Namespace, which `--create-namespace` makes; Namespaces of components stay."""
    return [obj for obj in render(Choice(IMAGE, components=components)) if not _is_of_the_release(obj)]


def _is_of_the_release(obj: dict[str, Any]) -> bool:
    return (obj["kind"], obj["metadata"]["name"]) == ("Namespace", chart.NAMESPACE)


def test_it_is_what_kustomize_renders(helm_binary: Path, packed: Path) -> None:
    found = _rendered(helm_binary, packed, chart.NAMESPACE, "--include-crds")
    assert _sorted(found) == _sorted(_of_kustomize())


def test_every_component_that_it_offers_is_what_kustomize_renders(helm_binary: Path, packed: Path, files: Tree) -> None:
    names = sorted(yaml.safe_load(files["values.yaml"].data)["components"])
    assert {"bootstrap", "ssh", "webhook", "unknown-fields"} <= set(names)
    flags = [f"--set=components.{name}=true" for name in names]
    found = _rendered(helm_binary, packed, chart.NAMESPACE, "--include-crds", *flags)
    assert _sorted(found) == _sorted(_of_kustomize(*names))


def test_values_reach_the_deployment(helm_binary: Path, packed: Path) -> None:
    digest = "sha256:" + "a" * 64
    flags = (
        "--set=replicas=1",
        f"--set=image.repository=r.example/nw,image.digest={digest}",
        "--set=extraArgs={--a=b}",
    )
    found = _rendered(helm_binary, packed, "elsewhere", *flags)
    (deployment,) = [obj for obj in found if obj["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert (deployment["spec"]["replicas"], container["image"]) == (1, f"r.example/nw@{digest}")
    assert container["args"][0] == "run"
    assert container["args"][-1] == "--a=b"
    assert chart.NAMESPACE not in json.dumps(found)


@pytest.mark.parametrize("flag", ["replicas=many", "image.tga=1", "components.nothing=true", "extraArgs={run}"])
def test_what_is_no_value_is_refused(helm_binary: Path, packed: Path, flag: str) -> None:
    done = _run(helm_binary, packed, chart.NAMESPACE, f"--set={flag}")
    assert done.returncode
    assert flag.split("=", maxsplit=1)[0].rsplit(".", maxsplit=1)[-1] in done.stderr


def test_values_fit_their_schema_and_each_is_described(files: Tree) -> None:
    schema = json.loads(files["values.schema.json"].data)
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(files["values.yaml"].data))
    assert all(value["description"] for value in schema["properties"].values())

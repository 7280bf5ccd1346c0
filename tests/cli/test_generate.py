"""``generate cluster``: templates, values, and that what it prints is valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nodewright.cli.generation.template import TemplateError, Variable, render, variables
from nodewright.cli.main import run

VERSION = "--kubernetes-version=v1.36.3"
ENDPOINT = "--endpoint=10.1.0.11:6444"
VALUES = {
    "simulated": [],
    "ssh": [ENDPOINT, "--set=CONTROL_PLANE_POOL=front", "--set=WORKER_POOL=racks"],
    "openstack": [
        ENDPOINT,
        *(f"--set={each}" for each in ("CONTROL_PLANE_FLAVOR=m1", "WORKER_FLAVOR=m2", "IMAGE=debian", "NETWORK=nodes")),
    ],
}


def generated(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    code = run(["generate", "cluster", *arguments])
    out, err = capsys.readouterr()
    assert code == 0, err
    return [each for each in yaml.safe_load_all(out) if each]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    assert run(["generate", "cluster", *arguments]) == code
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize("provider", VALUES)
@pytest.mark.parametrize("control_planes", [1, 3])
def test_each_template_gives_valid_manifests(
    provider: str, control_planes: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = ["prod", "--provider", provider, VERSION, "--workers=2", f"--control-planes={control_planes}"]
    objects = generated(capsys, *told, "-n", "team", *VALUES[provider])
    assert [each["kind"] for each in objects] == ["Cluster", *["Machine"] * control_planes, "MachineDeployment"]
    assert {each["metadata"]["namespace"] for each in objects} == {"team"}
    machines, workers = objects[1:-1], objects[-1]
    assert [each["metadata"]["name"] for each in machines] == [f"prod-cp-{n + 1}" for n in range(control_planes)]
    assert machines[0]["spec"]["versions"] == {"kubelet": "1.36.3", "controlPlane": "1.36.3"}
    assert workers["spec"]["replicas"] == 2
    file = tmp_path / "out.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    assert run(["validate", str(file)]) == 0


@pytest.mark.parametrize(
    ("endpoint", "host", "port"),
    [("api.prod", "api.prod", 6443), ("10.0.0.1:7443", "10.0.0.1", 7443), ("[fd00::1]:6443", "fd00::1", 6443)],
)
def test_the_endpoint(endpoint: str, host: str, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    objects = generated(capsys, "prod", "--provider=ssh", VERSION, *VALUES["ssh"], f"--endpoint={endpoint}")
    assert objects[0]["spec"]["controlPlaneEndpoint"] == {"host": host, "port": port}


@pytest.mark.parametrize("endpoint", ["https://a:1", "a:0", "a:99999", "a b", "a:"])
def test_an_endpoint_that_is_none(endpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "prod", "--provider=ssh", VERSION, *VALUES["ssh"], f"--endpoint={endpoint}")
    assert "--endpoint" in said


def test_variables_are_listed_with_their_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "cluster", "x", "--provider=ssh", "--list-variables"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "WORKER_POOL  required" in told
    assert "POD_CIDR  default: 10.244.0.0/16" in told


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "prod", "--provider=ssh", VERSION, ENDPOINT)
    assert "a value is needed for CONTROL_PLANE_POOL, WORKER_POOL" in said


def test_an_even_number_of_control_planes_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "even number" in refused(capsys, "prod", "--provider=simulated", VERSION, "--control-planes=2")


def test_a_variable_that_nobody_asks_for_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "prod", "--provider=simulated", VERSION, "--set=WORKER_POOl=a")
    assert "no variable WORKER_POOl" in said


def test_a_value_that_no_object_may_have_is_found_before_anything_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, "prod", "--provider=simulated", "--kubernetes-version=newest", code=1)
    assert "spec.versions" in said


def test_a_template_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    meta, data = "metadata: {name: '${CLUSTER_NAME}-${INDEX}'}", "data: {a: '${A:=}', b: '${B:=two words}'}"
    own.write_text(f"apiVersion: v1\nkind: ConfigMap\n{meta}\n{data}\n")
    objects = generated(capsys, "prod", f"--from={own}", "--control-planes=3")
    assert [each["metadata"]["name"] for each in objects] == ["prod-1", "prod-2", "prod-3"]


def test_two_defaults_of_one_name_are_refused() -> None:
    with pytest.raises(TemplateError, match="two defaults"):
        variables("${A:=1} ${A:=2}")
    assert variables("${A} ${A:=2} ${INDEX}") == [Variable("A", "2")]


def test_a_place_that_is_spelt_wrong_is_named_with_its_line() -> None:
    with pytest.raises(TemplateError, match="line 2: "):
        variables("a: 1\nb: ${lower}\n")


@given(value=st.text(max_size=20))
def test_no_value_adds_a_field(value: str) -> None:
    try:
        text = render('a: "${A}"\nb: 1\n', {"A": value}, 1)
    except TemplateError:
        assert re.search(r"[^A-Za-z0-9._/@+=~-]|^[^A-Za-z0-9/]", value)
        return
    assert yaml.safe_load(text) == {"a": value, "b": 1}

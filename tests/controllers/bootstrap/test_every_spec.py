"""Whatever ``spec.bootstrap`` is, it is refused by field, or rendered to what the programs on a host take."""

from __future__ import annotations

import json
import shlex
import subprocess
import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.bootstrap import cloud_config, documents, shell
from controllers.bootstrap.join import Join
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import Files, RuntimeConfig, Steps
from hack import binaries
from tests.controllers.bootstrap.scenarios import SCENARIOS
from tests.controllers.bootstrap.specs import bootstraps
from tests.controllers.bootstrap.test_join import JOIN
from tests.controllers.bootstrap.test_renderers import script_of
from tests.examples import usually

KUBEADM = binaries.find("kubeadm")


def steps_or_named(join: Join) -> Steps | None:
    """The steps, or None where all refusals name a field of the spec."""
    found = join_steps(join)
    if isinstance(found, Steps):
        return found
    assert found
    assert all(each.field.startswith("spec.bootstrap.") and each.message for each in found), found
    return None


def join_of(cluster: Any, machine: Any) -> Join:
    return replace(JOIN, kubelet_version="1.37.2", settings=effective({"bootstrap": cluster}, {"bootstrap": machine}))


@given(cluster=st.none() | bootstraps(), machine=bootstraps())
@usually(40)
def test_every_spec_is_refused_by_field_or_rendered_to_a_script_that_every_shell_reads(
    cluster: Any, machine: Any
) -> None:
    steps = steps_or_named(join_of(cluster, machine))
    if steps is None:
        return
    text = shell.render(steps)
    again = join_steps(join_of(json.loads(json.dumps(cluster)), json.loads(json.dumps(machine))))
    assert isinstance(again, Steps)
    assert shell.render(again) == text
    assert script_of(cloud_config.render(steps)) == text
    assert len({step.name for step in steps.steps}) > 5
    for program in ("dash", "bash"):
        done = subprocess.run([program, "-n"], input=text, text=True, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
    for action in (step.action for step in steps.steps):
        match action:
            case RuntimeConfig(_, legacy, current, _):
                assert [tomllib.loads(each)["version"] for each in (legacy, current)] == [2, 3]
            case Files(files):
                for file in files:
                    if file.path.endswith("/hosts.toml"):
                        tomllib.loads(str(file.content))


@given(machine=bootstraps())
@usually(20)
def test_no_text_of_a_spec_becomes_shell(machine: Any) -> None:
    """A marker in any text arrives quoted or in base64: no line of the script begins with it or holds it bare."""
    steps = steps_or_named(join_of(None, json.loads(json.dumps(machine).replace("$(reboot)", "$(touch /hit) MARK"))))
    if steps is None:
        return
    _, *bodies = shell.render(steps).split("() {\n  ")
    for body in bodies:
        if "MARK" in body:
            words = shlex.split(body.partition("\n}\n")[0])
            assert all("$(touch /hit) MARK" in word for word in words if "MARK" in word), body


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Any:
    if KUBEADM is None:
        pytest.skip(f"kubeadm not found: {binaries.REMEDY}")
    folder = tmp_path_factory.mktemp("kubeadm")
    (folder / "discovery.json").touch()

    def refuses(join: Join) -> str:
        """Why kubeadm refuses the join configuration or the kubelet's, "" if it takes both."""
        configuration = next(
            str(file.content) for file in documents.join_files(join) if file.path == documents.JOIN_CONFIG
        )
        texts = [configuration.replace(documents.DISCOVERY, str(folder / "discovery.json"))]
        for file in documents.patch_files(join.settings.spec):
            if "+merge" in file.path:
                kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
                head = "".join(f'"{name}": "{value}",' for name, value in kind.items())
                texts.append(str(file.content).replace("{", "{" + head, 1))
        (folder / "documents.yaml").write_text("\n---\n".join(texts))
        command = [str(KUBEADM), "config", "validate", "--config", str(folder / "documents.yaml")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    return refuses


@given(machine=bootstraps())
@usually(20)
def test_kubeadm_takes_every_document_of_every_spec(oracle: Any, machine: Any) -> None:
    join = replace(join_of(None, machine), kubelet_version="1.36.3")
    if steps_or_named(join) is not None:
        assert oracle(join) == ""


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_kubeadm_takes_the_documents_of_each_scenario(oracle: Any, scenario: str) -> None:
    assert oracle(SCENARIOS[scenario]) == ""

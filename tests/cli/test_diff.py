"""``nodewright diff``: what was declared, and nothing that servers and controllers add to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import names
from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET, Key
from nodewright.cli.comparing.declaration import Declaration, declaration_of, declared_in
from nodewright.cli.comparing.differences import Field, differences
from nodewright.cli.comparing.showing import shown
from nodewright.cli.main import run
from nodewright.cli.manifests.checks import defaulted
from nodewright.cli.manifests.positions import write_path
from nodewright.cli.moving.graph import graph


def cluster(name: str = "prod", **spec: Any) -> dict[str, Any]:
    network = {"services": {"cidrBlocks": ["10.96.0.0/16"]}, "pods": {"cidrBlocks": ["10.244.0.0/16"]}}
    spec = {"clusterNetwork": {**network, "serviceDomain": "cluster.local"}, **spec}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": names.API_VERSION, "kind": "Cluster", "metadata": meta, "spec": spec}


def workers(name: str = "prod-workers", of: str = "prod", **spec: Any) -> dict[str, Any]:
    labels = {"pool": "a", names.CLUSTER_NAME_LABEL: of}
    config = {"apiVersion": "simulated.nodewright.dev/v1alpha1", "kind": "SimulatedMachineConfig"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"clusterName": of, "versions": {"kubelet": "1.36.3"}, "providerConfig": {"value": config}},
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": "MachineDeployment",
        "metadata": {"name": name, "namespace": "default", "labels": {names.CLUSTER_NAME_LABEL: of}},
        "spec": {"selector": {"matchLabels": {"pool": "a"}}, "template": template, **spec},
    }


def secret(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": data}


def declared(*objects: dict[str, Any]) -> list[Declaration]:
    return [declaration_of(obj) for obj in objects]


def paths(a: list[Declaration], b: list[Declaration]) -> list[str]:
    return [write_path(field.path) for each in differences(a, b) for field in each.fields]


def written(folder: Path, name: str, *objects: dict[str, Any]) -> str:
    file = folder / name
    file.write_text("---\n".join(yaml.safe_dump(obj) for obj in objects))
    return str(file)


def as_served(obj: dict[str, Any]) -> dict[str, Any]:
    """What a server and the controllers make of it."""
    meta = {
        **obj["metadata"],
        "uid": "u-1",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": [names.MACHINE_FINALIZER],
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {names.REVISION_ANNOTATION: "4", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    return {**defaulted(obj), "metadata": meta, "status": {"replicas": 1}}


def test_what_the_server_and_controllers_fill_in_is_no_difference() -> None:
    assert differences(declared(cluster(), workers()), declared(as_served(cluster()), as_served(workers()))) == []


def test_a_default_that_is_written_out_is_no_difference_and_another_value_is() -> None:
    assert paths(declared(workers()), declared(workers(replicas=1))) == []
    assert paths(declared(workers()), declared(workers(replicas=2))) == ["spec.replicas"]


def test_what_a_person_asks_for_by_an_annotation_is_a_difference() -> None:
    paused = workers()
    paused["metadata"]["annotations"] = {names.PAUSED_ANNOTATION: "true"}
    assert paths(declared(workers()), declared(paused)) == ["metadata.annotations"]


def test_clusters_of_other_names_and_namespaces_are_compared_member_by_member() -> None:
    there = [cluster("stage"), workers("stage-workers", "stage", replicas=4)]
    for obj in there:
        obj["metadata"]["namespace"] = "other"
    assert paths(declared(cluster(), workers()), declared(*there)) == ["spec.replicas"]


def test_an_object_of_one_side_alone_is_named() -> None:
    found = differences(declared(cluster()), declared(cluster(), workers()))
    assert [(each.a, each.b.name if each.b else "") for each in found] == [(None, "prod-workers")]


def test_items_of_a_list_are_told_apart_by_their_name() -> None:
    def pool(*hosts: str) -> dict[str, Any]:
        listed = [{"name": host, "address": f"10.0.0.{host[-1]}"} for host in hosts]
        meta = {"name": "racks"}
        spec = {"secretName": "key", "hosts": listed}
        return {"apiVersion": "ssh.nodewright.dev/v1alpha1", "kind": "SSHHostPool", "metadata": meta, "spec": spec}

    assert paths(declared(pool("r1", "r2")), declared(pool("r2", "r3"))) == [
        'spec.hosts["name=r1"]',
        'spec.hosts["name=r3"]',
    ]


def test_what_controllers_have_made_was_not_declared() -> None:
    def owned(obj: dict[str, Any], uid: str, owner: str = "") -> dict[str, Any]:
        reference = [{"uid": owner, "controller": True, "kind": "X", "name": "x"}] if owner else []
        return {**obj, "metadata": {**obj["metadata"], "uid": uid, "ownerReferences": reference}}

    member = {**workers("prod-workers-abc"), "kind": "MachineSet"}
    authority = {"metadata": {"name": "prod-ca", "namespace": "default", "uid": "u-5"}, "kind": "Secret"}
    lost = {"metadata": {"name": "lost", "namespace": "default", "labels": {names.CLUSTER_NAME_LABEL: "prod"}}}
    world = {
        CLUSTER: [owned(cluster(), "u-1")],
        MACHINE_DEPLOYMENT: [owned(workers(), "u-2")],
        MACHINE_SET: [owned(member, "u-3", "u-2")],
        MACHINE: [owned({**lost, "kind": "Machine"}, "u-4", "of-nobody")],
        SECRET: [authority],
    }
    found = declared_in(graph(world, Key("default", "prod")))
    assert [obj["metadata"]["name"] for obj in found] == ["prod", "prod-workers", "lost"]


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_values_of_secrets_are_compared_and_never_shown(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = (written(tmp_path, f"{value}.yaml", secret(key=value, same="same")) for value in ("tiger", "lion"))
    assert run(["diff", one, other, "-o", form]) == 1
    shown = "".join(capsys.readouterr())
    assert "data.key" in shown
    assert "same" not in shown
    assert [word for word in ("dGlnZXI", "bGlvbg", '"tiger"', '"lion"') if word in shown] == []
    assert shown.count("[hidden]") == 2


def test_data_and_string_data_of_a_secret_are_one() -> None:
    encoded = {**secret(), "type": "Opaque", "data": {"key": "dGlnZXI="}}
    del encoded["stringData"]
    assert differences(declared(secret(key="tiger")), declared(encoded)) == []


def test_what_looks_like_a_credential_is_hidden_wherever_it_stands() -> None:
    owner = declared(workers())[0]
    token = "abcdef.0123456789abcdef"
    for path, value in (
        (("spec", "text"), f"join with {token}"),
        (("spec", "password"), token),
        (("spec", "x"), {"userData": token, "deep": [{"text": token}]}),
    ):
        assert token not in json.dumps(shown(owner, Field(path, value, value), value))


def test_the_exit_codes_are_those_of_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path, "a.yaml", cluster(), workers())
    other = written(tmp_path, "b.yaml", cluster(), workers(replicas=7))
    broken = written(tmp_path, "c.yaml", workers(replicas="many"))
    assert run(["diff", one, one]) == 0
    assert "".join(capsys.readouterr()) == ""
    assert run(["diff", one, other]) == 1
    assert "spec.replicas — 1 → 7" in capsys.readouterr().out
    for wrong in ([one, broken], [one, "nothing"], ["-", "-"], [one, "default/prod", "--kubeconfig", f"{tmp_path}/no"]):
        assert run(["diff", *wrong]) == 2, wrong


def test_values_of_a_difference_come_in_the_form_of_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = written(tmp_path, "a.yaml", cluster(), workers())
    other = written(tmp_path, "b.yaml", cluster(), workers(replicas=7))
    assert run(["diff", one, other, "-o", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(each["kind"], each["change"], each["fields"]) for each in found["objects"]] == [
        ("MachineDeployment", "Changed", [{"path": "spec.replicas", "a": 1, "b": 7}])
    ]


def test_lines_fit_a_terminal_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = {"message": " ".join(["word"] * 100)}
    other = workers()
    other["metadata"]["annotations"] = long
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "a.yaml", workers())
    written(tmp_path, "b.yaml", other)
    assert run(["diff", "a.yaml", "b.yaml"]) == 1
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80

"""``nodewright get clusters``: one line for each Cluster, and one for each management cluster that does not answer."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from api import names
from controllers.kernel.refs import CLUSTER, CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT, Obj
from nodewright.cli.listing.rows import Count, rows
from nodewright.cli.main import run


def obj(name: str, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any) -> Obj:
    labels = {names.CLUSTER_NAME_LABEL: "prod"}
    found = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": labels, **meta}
    return {"metadata": found, "spec": spec or {}, "status": status or {}}


def machine(name: str, version: str = "1.36.3", *, ready: bool = True, plane: bool = False, **meta: Any) -> Obj:
    asked = {"kubelet": version, **({"controlPlane": version} if plane else {})}
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return obj(name, {"versions": asked}, {"versions": {"kubelet": version}, "conditions": [condition]}, **meta)


def owned_by(name: str) -> list[dict[str, Any]]:
    return [{"uid": f"u-{name}", "controller": True}]


def test_a_row_counts_ready_machines_of_those_asked_for() -> None:
    spec = {"controlPlaneEndpoint": {"host": "10.1.0.11"}}
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    planes = [
        machine(f"cp-{n}", v, plane=True, ownerReferences=owned_by("cp")) for n, v in ((0, "1.36.3"), (1, "1.35.4"))
    ]
    workers = [
        machine("w-0", "1.34.0", ownerReferences=owned_by("md")),
        machine("w-1", ready=False, ownerReferences=owned_by("md")),
        machine("w-2", deletionTimestamp="2026-01-01T00:00:00Z"),
        machine("alone"),
    ]
    world = {
        CLUSTER: [obj("prod", spec, status)],
        CONTROL_PLANE: [obj("cp", {"replicas": 3})],
        MACHINE_DEPLOYMENT: [obj("md", {"replicas": 4})],
        MACHINE: [*planes, *workers],
    }
    (row,) = rows(world)
    assert (row.endpoint, row.version, row.condition) == ("10.1.0.11:6443", "1.35.4 to 1.36.3", "Ready")
    assert (row.control_plane, row.workers) == (Count(2, 3), Count(2, 5))


@pytest.mark.parametrize(
    ("conditions", "meta", "condition"),
    [
        ([], {}, "NotSeen"),
        ([{"type": "Ready", "status": "False", "reason": "Unreachable", "message": "x"}], {}, "Unreachable"),
        ([{"type": "Paused", "status": "True"}, {"type": "Ready", "status": "True"}], {}, "Paused"),
        ([{"type": "Ready", "status": "True"}], {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "Deleting"),
    ],
)
def test_the_condition_is_one_word(conditions: list[Any], meta: dict[str, Any], condition: str) -> None:
    (row,) = rows({CLUSTER: [obj("prod", {}, {"conditions": conditions}, **meta)]})
    assert (row.condition, row.endpoint, row.version, str(row.workers)) == (condition, "", "", "-")


def test_members_of_another_namespace_do_not_count() -> None:
    (row,) = rows({CLUSTER: [obj("prod")], MACHINE: [machine("w", namespace="other")]})
    assert row.workers == Count(0, 0)


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def kubeconfig(file: Path, **servers: str) -> str:
    clusters = [{"name": name, "cluster": {"server": server}} for name, server in servers.items()]
    contexts = [{"name": name, "context": {"cluster": name}} for name in servers]
    file.write_text(
        yaml.safe_dump({"clusters": clusters, "contexts": contexts, "current-context": next(iter(servers))})
    )
    return str(file)


def test_each_that_can_not_be_read_is_a_line_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = closed.getsockname()[1]
    file = kubeconfig(tmp_path / "config", gone=f"http://127.0.0.1:{nobody}", odd="ftp://x")
    asked = ["get", "clusters", "--kubeconfig", file, "--all-contexts"]
    assert run(asked) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1::2]] == ["gone", "odd"]
    assert [line.split()[7] for line in lines[1::2]] == ["Unreachable"] * 2
    assert "no answer from the cluster" in lines[2]
    assert "is not an HTTP URL" in lines[4]
    assert run([*asked, "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)["managementClusters"]
    found = [(each["context"], bool(each["problem"]), each["clusters"]) for each in told]
    assert found == [("gone", True, []), ("odd", True, [])]


def test_one_that_says_nothing_is_waited_for_no_longer_than_its_time(
    tmp_path: Path, silent: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file = kubeconfig(tmp_path / "config", mute=f"http://127.0.0.1:{silent}")
    assert run(["get", "clusters", "--kubeconfig", file, "--timeout", "0.3"]) == 1
    assert "no answer within 0.3 s" in capsys.readouterr().out


def test_a_context_is_looked_for_in_all_kubeconfigs_and_named_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = (kubeconfig(tmp_path / name, **{name: "ftp://x"}) for name in ("one", "two"))
    files = ["--kubeconfig", one, "--kubeconfig", two]
    assert run(["get", "clusters", *files, "--context", "two", "-o", "json"]) == 1
    assert [each["context"] for each in json.loads(capsys.readouterr().out)["managementClusters"]] == [f"{two}: two"]
    assert run(["get", "clusters", *files, "--context", "two", "--all-contexts"]) == 2

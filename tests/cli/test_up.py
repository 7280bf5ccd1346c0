"""``up`` as a process: ready, private, exclusive, graceful, and going on where it was."""

from __future__ import annotations

import gc
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hack.program import Up
from nodewright.cli.longevity import settle_in, starting
from tests.cli.processes import EXAMPLE, nodewright

UNNEEDED = {
    "controllers": "nobody asked for them",
    "jsonschema": "checks configurations of providers",
    "kopf": "imports all of kubernetes_asyncio",
    "kubernetes_asyncio": "over a thousand modules",
    "prometheus_client": "belongs to the controllers",
    "providers": "there are no hosts",
    "rich": "there is nothing to draw",
    "structlog": "nothing has been logged, and it loads rich",
    "yaml": "the CRDs are carried as JSON, and the kubeconfig is written so",
}
"""What a plane alone can do without; each of them costs its start a twentieth or more."""


@pytest.fixture
def up(tmp_path: Path, kubectl_binary: Path) -> Iterator[Up]:
    with Up(tmp_path, kubectl_binary, f"--data-dir={tmp_path / 'data'}", "--no-controllers") as running:
        yield running


def server_of(kubeconfig: Path) -> str:
    return str(json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_once_it_says_ready_kubectl_works(up: Up) -> None:
    assert "Established" in up.kubectl("get", "crd", "machines.cluster.k8s.io", "-o", "yaml")


def test_a_plane_alone_loads_nothing_that_only_controllers_need(
    tmp_path: Path, kubectl_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with Up(tmp_path, kubectl_binary, "--in-memory", "--no-controllers"):
        written = (tmp_path / "up.log").read_text().splitlines()
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in written}
    assert "aiohttp" in loaded
    assert {name: why for name, why in UNNEEDED.items() if name in loaded} == {}


def test_it_tells_what_to_type_next(up: Up) -> None:
    written = [up.lines.get(timeout=120) for _ in range(5)]
    assert f"  export KUBECONFIG={up.kubeconfig}" in written
    example = next(line.split()[-1] for line in written if "kubectl apply" in line)
    assert Path(example).read_text() == EXAMPLE.read_text()


def test_keys_and_kubeconfig_are_private(up: Up) -> None:
    data = up.folder / "data"
    assert mode_of(up.kubeconfig) == 0o600
    assert mode_of(data) == 0o700
    up.lines.get(timeout=120)
    assert {"example.yaml", "port"} <= {p.name for p in data.iterdir()}
    assert [p.name for p in data.rglob("*") if p.is_file() and mode_of(p) & 0o077] == []


def test_it_listens_on_loopback_only(up: Up) -> None:
    assert urlsplit(server_of(up.kubeconfig)).hostname == "127.0.0.1"


def test_a_second_one_in_the_same_folder_is_refused_and_names_the_first(up: Up) -> None:
    second = nodewright("up", "--data-dir", str(up.folder / "data"))
    assert second.returncode == 1
    holder = (up.folder / "data" / "lock").read_text()
    assert f"in use by another control plane (process {holder})" in second.stderr
    assert "--data-dir" in second.stderr
    assert up.kubectl("get", "namespaces")


def test_sigterm_ends_it_in_good_order_and_a_restart_goes_on_at_the_same_address(up: Up) -> None:
    up.kubectl("create", "namespace", "kept")
    before = server_of(up.kubeconfig)
    assert up.stop() == 0
    up.start()
    assert server_of(up.kubeconfig) == before
    assert "kept" in up.kubectl("get", "namespaces")


def test_a_damaged_state_is_refused_and_gone_on_with_if_that_is_accepted(up: Up, kubectl_binary: Path) -> None:
    data = up.folder / "data"
    up.kubectl("create", "namespace", "lost")
    assert up.stop() == 0
    (data / "state.db").unlink()
    refused = nodewright("up", "--data-dir", str(data), "--no-controllers")
    assert refused.returncode == 1
    assert "state.db is missing or empty" in refused.stderr
    assert "--accept-loss" in refused.stderr
    with Up(up.folder, kubectl_binary, f"--data-dir={data}", "--no-controllers", "--accept-loss") as again:
        assert "lost" not in again.kubectl("get", "namespaces")


def test_a_file_whose_first_object_is_the_namespace_is_deleted_without_an_error(up: Up) -> None:
    objects: list[dict[str, object]] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}]
    objects += [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"map-{number}", "namespace": "shop"}}
        for number in range(10)
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    up.kubectl("apply", "-f", "-", stdin=text)
    gone = up.kubectl("delete", "-f", "-", stdin=text)
    assert gone.count("deleted") == len(objects)
    up.kubectl.fails("get", "namespace", "shop")


def test_a_port_that_is_taken_is_refused_by_name(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = nodewright("up", "--data-dir", str(tmp_path / "d"), "--port", str(port), "--no-controllers")
    assert refused.returncode == 1
    assert f"port {port} can't be used" in refused.stderr
    assert "Choose another --port" in refused.stderr


def test_someone_elses_kubeconfig_is_never_overwritten(tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text(json.dumps({"clusters": [{"name": "production"}]}))
    refused = nodewright("up", "--in-memory", "--kubeconfig", str(theirs))
    assert refused.returncode == 1
    assert "is not ours" in refused.stderr
    assert json.loads(theirs.read_text()) == {"clusters": [{"name": "production"}]}


def test_a_kubeconfig_in_yaml_is_not_ours_either(tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text("apiVersion: v1\nclusters:\n- name: production\n")
    assert "is not ours" in nodewright("up", "--in-memory", "--kubeconfig", str(theirs)).stderr


def test_in_memory_a_folder_gets_the_kubeconfig_and_no_state(tmp_path: Path, kubectl_binary: Path) -> None:
    folder = tmp_path / "data"
    with Up(tmp_path, kubectl_binary, "--in-memory", "--data-dir", str(folder), "--no-controllers") as up:
        assert up.kubectl("get", "namespaces")
        assert not (folder / "state.db").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_made_is_named() -> None:
    refused = nodewright("up", "--data-dir", "/proc/nodewright")
    assert refused.returncode == 1
    assert "/proc/nodewright" in refused.stderr


def test_a_damaged_simulated_cloud_is_named_and_not_forgotten(tmp_path: Path) -> None:
    damaged = tmp_path / "data" / "simulated" / "default.jsonl"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("not json\n{}\n")
    refused = nodewright("up", "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert "default.jsonl, line 1" in refused.stderr
    assert damaged.read_text() == "not json\n{}\n"


def test_garbage_is_not_looked_for_in_what_it_loaded_at_its_start() -> None:
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    try:
        with starting():
            assert not gc.isenabled()
            settle_in()
            assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
        with pytest.raises(ValueError, match="refused"), starting():
            raise ValueError("refused")
        assert gc.isenabled()
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)

"""How long do the usual writes take? Printed for people (`pytest -s`); nothing is asserted about time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from nodewright.apiserver.store import SqliteJournal
from nodewright.apiserver.values import ListOptions, PatchRequest, WatchOptions, WriteOptions
from tests.apiserver.store.cluster import Cluster, owned_by

COUNT = 1000
FLUSH_EVERY = 50


def cpu(label: str, count: int, act: Callable[[], object]) -> None:
    """Run something and print its CPU time per object."""
    begin = time.process_time()
    act()
    print(f"{label}: {(time.process_time() - begin) / count * 1e6:.0f} µs CPU")


def test_writes_reads_and_watches(tmp_path: Path) -> None:
    cluster = Cluster(SqliteJournal(tmp_path / "state.db")).with_machines()
    store, machines = cluster.store, cluster.res("machines")
    owner = cluster.machine("owner")
    meta = {"labels": {"a": "b", "c": "d"}, "ownerReferences": owned_by(owner, block=True), "finalizers": ["a.b/c"]}
    spec = {"replicas": 3, "version": "v1.30.0" * 80}
    options = WriteOptions(field_manager="probe")
    head = {"apiVersion": machines.api_version, "kind": machines.kind, "spec": spec}
    bodies = [{**head, "metadata": {**meta, "name": f"m-{index:05}"}} for index in range(COUNT)]
    watch = store.watch(machines, "default", WatchOptions(resource_version=store.resource_version))

    def status(index: int) -> None:
        request = PatchRequest("merge", {"status": {"phase": "Ready", "replicas": index}}, options)
        store.patch(machines, "default", f"m-{index:05}", request, subresource="status")

    def flushed(act: Callable[[int], object]) -> Callable[[], None]:
        def run() -> None:
            for index in range(COUNT):
                act(index)
                if index % FLUSH_EVERY == 0:
                    store.flush()
            store.flush()

        return run

    cpu(
        "create of 1 KB, journal included",
        COUNT,
        flushed(lambda i: store.create(machines, "default", bodies[i], options)),
    )
    cpu("status patch, journal included", COUNT, flushed(status))
    cpu("list by label", COUNT, lambda: store.list(machines, "default", ListOptions(label_selector="a=b")))
    cpu("watch of all changes", 2 * COUNT, lambda: [watch.poll() for _ in range(3)])
    cluster.delete("machines", "owner")
    cpu("garbage collection", COUNT, cluster.settle)
    store.close()
    assert len(cluster.names("machines")) == COUNT

"""Controllers that serve one namespace: what is in others is neither read nor touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controllers.kernel.refs import CLUSTER, MACHINE, MACHINE_SET, NAMESPACE, NODE, Key, Ref
from nodewright.cli import main as cli
from tests.runtime.town import FAST, Town


async def _machine_set(town: Town, namespace: str, replicas: int) -> None:
    labels = {"pool": namespace}
    template = {"metadata": {"labels": labels}, "spec": {"providerConfig": {"value": FAST}}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "ms", "namespace": namespace}
    await town.client.create(
        MACHINE_SET, {"apiVersion": MACHINE_SET.api_version, "kind": "MachineSet", "metadata": meta, "spec": spec}
    )


async def test_only_the_objects_of_the_namespace_are_served_and_nodes_of_others_stay(town: Town) -> None:
    for name in ("team-a", "team-b"):
        await town.client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await _machine_set(town, name, 1)
    everywhere = town.options
    async with town.controllers():
        await town.until(lambda: town.ready() == 2)
    (other,) = [machine for machine in town.objects(MACHINE) if machine["metadata"]["namespace"] == "team-b"]
    town.options = replace(everywhere, namespace="team-a")
    async with town.controllers() as manager:
        keys = [key for store in manager.cache.stores.values() for key in list(store.keys())]
        assert [key for key in keys if key.namespace == "team-b"] == []
        for namespace in ("team-a", "team-b"):
            await town.client.scale(Ref(MACHINE_SET, Key(namespace, "ms")), 3)
        await town.until(lambda: town.ready() == 4)
        machines = [machine for machine in town.objects(MACHINE) if machine["metadata"]["namespace"] == "team-b"]
        assert machines == [other]
        assert len(town.objects(NODE)) == 4, "a Node whose Machine is not seen is not left over"
    assert CLUSTER in manager.cache.stores


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--orphan-hosts=delete",), "--orphan-hosts=delete and --namespace contradict each other"),
        (("--controllers=*,certificatesigningrequest",), "--namespace does not divide the work of"),
    ],
)
def test_what_needs_all_namespaces_is_refused(
    arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["run", "--namespace=team-a", *arguments]) == 2
    assert says in capsys.readouterr().err

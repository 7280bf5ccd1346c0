"""Any graph of our objects survives a move, an archive, and a backup with its restore, unchanged but for UIDs.

The moves are whole ones: journal, copies, comparison, hosts; only the Cluster's own API is left out.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.names import MOVING_ANNOTATION
from controllers.kernel.refs import MACHINE, SECRET, Key, Kind, key_of, ref_of, uid_of
from nodewright.apiserver.app.kinds import install_kinds
from nodewright.apiserver.store import Store
from nodewright.cli.archives.backups import check, restore, take
from nodewright.cli.archives.contents import BACKUP, Contents, read
from nodewright.cli.archives.kept_journal import KeptJournal
from nodewright.cli.archives.keys import Keys
from nodewright.cli.archives.store_client import StoreClient
from nodewright.cli.moving import moving
from nodewright.cli.moving.archive import archive
from nodewright.cli.moving.graph import KINDS, graph
from nodewright.cli.moving.moving import Move
from nodewright.cli.moving.sides import Side
from nodewright.cli.moving.translating import differences
from nodewright.crds import load_crds
from providers.base.contract import HostIdentity, HostRequest
from providers.base.registry import Registry
from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds
from tests.cli.test_move_killed import CONFIG, GROUP
from tests.examples import usually

PROD = Key("default", "prod")
KEYS = Keys(identities=(str(pyrage.x25519.Identity.generate()),))
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)


@dataclass(frozen=True)
class Recipe:
    """Of one set: its Cluster, whether a deployment owns it, its Machines, how they say their provider."""

    cluster: str
    owned: bool
    machines: int
    by_class: bool
    texts: dict[str, str] = field(default_factory=dict)


RECIPES = st.lists(
    st.builds(
        Recipe,
        st.sampled_from(["prod", "prod", "other"]),
        st.booleans(),
        st.integers(0, 2),
        st.booleans(),
        st.dictionaries(st.sampled_from(["a", "example.com/b", "c.d/e"]), WORDS, max_size=2),
    ),
    max_size=3,
)


class Plane:
    """A management cluster in this process."""

    def __init__(self) -> None:
        self.journal = KeptJournal()
        self.store = Store(clock=lambda: datetime.now(UTC), new_uid=lambda: str(uuid.uuid4()), journal=self.journal)
        install_kinds(self.store, CRDS)
        self.client = StoreClient(self.store)

    def side(self, title: str) -> Side:
        return Side(self.client, title)

    async def make(self, kind: str, name: str, *, owner: Any = None, status: Any = None, **more: Any) -> dict[str, Any]:
        what = next(each for each in KINDS if each.name == kind)
        metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
        if owner is not None:
            meta = owner["metadata"]
            reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
            metadata["ownerReferences"] = [{**reference, "name": meta["name"], "uid": meta["uid"]}]
        made = await self.client.create(
            what, {"apiVersion": what.api_version, "kind": kind, "metadata": metadata, **more}
        )
        return made if status is None else await self.client.patch_status(ref_of(what, made), status)


CRDS = list(load_crds())


async def fill(plane: Plane, recipes: list[Recipe], worlds: Worlds) -> None:
    data = {"value": base64.b64encode(b"no API").decode()}
    for cluster in ("prod", "other"):
        await plane.make("Cluster", cluster, spec={}, status={"phase": "Provisioned"})
        await plane.make("Secret", f"{cluster}-kubeconfig", data=data)
    await plane.make("Secret", "prod-ca", data={"tls.key": base64.b64encode(b"\0\xff key").decode()})
    await plane.make("MachineClass", "small", providerConfig=CONFIG)
    for number, recipe in enumerate(recipes):
        labels = {"cluster.k8s.io/cluster-name": recipe.cluster, "pool": f"p{number}"}
        config = {"valueFrom": {"machineClass": {"name": "small"}}} if recipe.by_class else {"value": CONFIG}
        template = {"metadata": {"labels": labels}, "spec": {"providerConfig": config}}
        spec = {"replicas": recipe.machines, "selector": {"matchLabels": {"pool": f"p{number}"}}, "template": template}
        metadata = {"labels": labels, "annotations": recipe.texts, "finalizers": ["example.com/held"]}
        top = (
            await plane.make("MachineDeployment", f"d{number}", metadata=metadata, spec=spec) if recipe.owned else None
        )
        middle = await plane.make(
            "MachineSet", f"s{number}", owner=top, metadata=metadata, spec=spec,
            status={"replicas": recipe.machines, "ordinals": {"next": recipe.machines + 1}},
        )  # fmt: skip
        for ordinal in range(recipe.machines):
            await machine(plane, f"s{number}-{ordinal}", middle, (metadata, template["spec"]), worlds)


async def machine(plane: Plane, name: str, owner: Any, like: tuple[Any, Any], worlds: Worlds) -> None:
    metadata, spec = like
    made = await plane.make("Machine", name, owner=owner, metadata=metadata, spec=spec)
    uid, cluster = uid_of(made), metadata["labels"]["cluster.k8s.io/cluster-name"]
    opened = registration_for(worlds, lambda _seconds: asyncio.sleep(0))
    provider = opened.open(opened.scope_of(CONFIG), CONFIG)
    identity = HostIdentity(uid, "default", name, cluster, await plane.side("it").mark())
    host = await provider.create(HostRequest(identity, CONFIG, name))
    ledger = {"metadata": {"annotations": {"example.com/of": f"{uid}/{uid_of(owner)}"}}}
    await plane.client.merge_patch(ref_of(MACHINE, made), {**ledger, "spec": {"providerID": f"simulated://{host.id}"}})
    status = {"phase": "Running", "nodeRef": {"kind": "Node", "name": name, "uid": str(uuid.uuid4())}}
    await plane.client.patch_status(ref_of(MACHINE, made), status)
    await plane.make("Secret", f"{name}-data", owner={**made, "kind": "Machine", "apiVersion": GROUP})


async def objects(side: Side) -> list[tuple[Kind, dict[str, Any]]]:
    return [(item.kind, dict(item.obj)) for item in graph(await side.world("default"), PROD)]


async def unchanged(before: list[tuple[Kind, dict[str, Any]]], sides: tuple[Side, Side]) -> dict[str, str]:
    """But for UIDs, which are answered: those before to those after."""
    after = {(kind, key_of(obj)): obj for kind, obj in await objects(sides[1])}
    assert set(after) == {(kind, key_of(obj)) for kind, obj in before}
    uids = {uid_of(obj): uid_of(after[kind, key_of(obj)]) for kind, obj in before}
    known = uids | {await sides[0].mark(): await sides[1].mark()}
    for kind, obj in before:
        there = after[kind, key_of(obj)]
        assert differences(obj, there, known) == [], f"{kind.name} {key_of(obj)}"
        assert MOVING_ANNOTATION not in (there["metadata"].get("annotations") or {})
        if kind == SECRET:
            assert there.get("data") == obj.get("data")
        text = str({**there, "data": None, "spec": None})
        assert not [old for old in known if old in text], "no reference to what was"
    return uids


def hosts(worlds: Worlds) -> dict[str, str]:
    return {host.machine_uid: host.id for world in worlds.all.values() for host in world.hosts()}


async def moves(recipes: list[Recipe], folder: Path) -> None:
    """From one to the other, into an archive, and out of it into a third one: hosts follow each time."""
    worlds = Worlds(lambda: datetime.now(UTC))
    planes = [Plane() for _ in range(3)]
    await fill(planes[0], recipes, worlds)
    sides = [plane.side(f"plane {number}") for number, plane in enumerate(planes)]
    registry = Registry.of(registration_for(worlds, lambda _seconds: asyncio.sleep(0)))

    async def go(source: Side, target: Side) -> None:
        before, had = await objects(source), hosts(worlds)
        await Move(source, target, PROD, registry, lambda _text: None).run()
        uids = await unchanged(before, (source, target))
        assert hosts(worlds) == {uids.get(uid, uid): host for uid, host in had.items()}, "and nobody else's"

    await go(sides[0], sides[1])
    with archive(folder, PROD, KEYS, new=True) as between:
        await go(sides[1], between)
    with archive(folder, PROD, KEYS, new=False) as between:
        await go(between, sides[2])
    left = await sides[0].world("default")
    assert {str(obj["metadata"]["name"]) for each in left.values() for obj in each} >= {"other", "small"}


@given(recipes=RECIPES)
@usually(2)
def test_a_graph_survives_a_move_and_an_archive(recipes: list[Recipe]) -> None:
    async def nobody(*_given: Any) -> None:
        """There is no API of the Cluster here."""

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(moving, "rename_owners", nobody)
        asyncio.run(moves(recipes, Path(folder) / "archives"))


@given(recipes=RECIPES)
@usually(1)
def test_a_graph_survives_a_backup_and_its_restore_with_its_uids(recipes: list[Recipe]) -> None:
    plane = Plane()
    asyncio.run(fill(plane, recipes, Worlds(lambda: datetime.now(UTC))))
    plane.store.flush()
    contents = Contents(BACKUP, int(plane.store.resource_version), plane.store.snapshot())
    contents = read(contents.written(), BACKUP, "it")
    check(contents)
    with TemporaryDirectory() as folder:
        restore(contents, Path(folder) / "up")
        again = take(Path(folder) / "up")
    assert {entry[:4]: entry.obj for entry in again.entries} == {e[:4]: e.obj for e in plane.store.snapshot()}

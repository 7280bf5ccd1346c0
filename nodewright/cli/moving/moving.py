"""Move one Cluster: each step may be done twice, so that a run goes on where another one ended (docs/adr/0027)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from api.names import MOVING_ANNOTATION
from controllers.kernel.refs import CLUSTER, MACHINE, SECRET, Key, Obj, Ref, annotations_of, key_of, ref_of, uid_of
from nodewright.cli.exits import CliError
from nodewright.cli.moving.graph import Item, graph, hindrances
from nodewright.cli.moving.handover import Hosts, rename_owners, transfers
from nodewright.cli.moving.journal import Journal, Phase
from nodewright.cli.moving.sides import Side
from nodewright.cli.moving.translating import body_of, differences, status_to_be
from nodewright.runtime.kube.errors import ApiError
from providers.base.registry import Registry

AGAIN = "Run the same command again: it goes on where it ended; --abort takes all back before the hosts are handed over"
SEEN_SECONDS = 60.0
"""How long controllers of the source may take to see that they are to leave the Cluster alone."""
_LOOK_SECONDS = 0.2
_MOST_PASSES = 10
_MOST_NAMED = 10
_RECOMPUTED = frozenset({"Cluster", "ControlPlane"})
"""Kinds whose status controllers write anew while they are paused: it is copied, and not compared afterwards."""


@dataclass(frozen=True, slots=True)
class Report:
    """How many objects were copied and how many hosts handed over by this run; 0 of both: it had ended before."""

    objects: int
    hosts: int


class Move:
    """Of one Cluster from ``source`` to ``target``. ``say`` gets a line for each step."""

    def __init__(
        self, source: Side, target: Side, cluster: Key, registry: Registry, say: Callable[[str], None]
    ) -> None:
        self._source, self._target = source, target
        self._cluster = cluster
        self._say = say
        self._hosts = Hosts(registry, target)
        self._hosts_at_source = Hosts(registry, source)

    async def run(self) -> Report:
        """Raises CliError; what is done then stays done, and ``abort`` takes it back before the commit."""
        try:
            journal = await self._begun()
            if journal is None and await self._is_over():
                self._say("is at the target already")
                return Report(0, 0)
            journal = journal or await self._begin()
            if journal.phase is Phase.PREPARE:
                journal = await self._prepare(journal)
            hosts = await self._settle(journal) if journal.phase is Phase.COMMITTED else 0
            await self._target.forget(self._cluster)
            await self._source.forget(self._cluster)
            return Report(len(journal.entries), hosts)
        finally:
            await self.close()

    async def check(self) -> list[Item]:
        """What would move. Raises CliError naming all that forbids it; nothing is written."""
        try:
            return await self._may_begin()
        finally:
            await self.close()

    async def abort(self) -> bool:
        """Take back what was done; False: nothing was under way. Raises CliError after the commit."""
        journal = await self._begun()
        if journal is None:
            return False
        if journal.phase is not Phase.PREPARE:
            text = f"the move of Cluster {self._cluster} is committed: hosts may be handed over already"
            raise CliError(text, "Run it again without --abort: it leads forward only")
        for item in reversed([item for item, _ in await self._copies(journal)]):
            await self._target.remove(ref_of(item.kind, item.obj))
        await self._target.forget(self._cluster)
        await self._source.set_mark(Ref(CLUSTER, self._cluster), None)
        await self._source.forget(self._cluster)
        return True

    async def close(self) -> None:
        for hosts in (self._hosts, self._hosts_at_source):
            await hosts.close()

    # Before the commit

    async def _begun(self) -> Journal | None:
        """The move that is under way between these two. Raises CliError if another one is."""
        found = await self._source.journal(self._cluster)
        if found is None:
            return None
        journal = found[0]
        marks = (await self._source.mark(), await self._target.mark())
        if (journal.source, journal.target) != marks:
            text = f"Cluster {self._cluster} is being moved to another management cluster ({journal.target})"
            raise CliError(text, "End that move first, or abort it: name that cluster as the target")
        self._say(f"goes on with move {journal.id} ({journal.phase})")
        return journal

    async def _is_over(self) -> bool:
        """An earlier run has ended after its last write, and nobody heard of it."""
        if await self._source.find(CLUSTER, self._cluster) is not None:
            return False
        return await self._target.find(CLUSTER, self._cluster) is not None

    async def _begin(self) -> Journal:
        await self._may_begin()
        marks = (await self._source.mark(), await self._target.mark())
        journal = Journal(secrets.token_hex(6), self._cluster, *marks)
        await self._target.save()  # its mark is known from here on
        await self._source.remember(journal)
        return journal

    async def _may_begin(self) -> list[Item]:
        if await self._source.mark() == await self._target.mark():
            raise CliError("the source and the target are one cluster", "Name another one as the target")
        items = await self._items()
        why = [*hindrances(items), *await self._hosts_at_source.hindrances(items), *await self._namesakes(items)]
        if Key(self._cluster.namespace, f"{self._cluster.name}-kubeconfig") not in _keys(items, SECRET.name):
            why.append(f"Cluster {self._cluster} has no API of its own: its Nodes are in the management cluster")
        if why:
            raise CliError(f"Cluster {self._cluster} can't be moved now: {_some(why)}", "Nothing was changed")
        return items

    async def _items(self) -> list[Item]:
        items = graph(await self._source.world(self._cluster.namespace), self._cluster)
        if not items:
            raise CliError(f"Cluster {self._cluster} does not exist at the source")
        return items

    async def _namesakes(self, items: list[Item]) -> list[str]:
        """Objects of the target that are in the way. One that others may share is used if it says the same."""
        world = await self._target.world(self._cluster.namespace)
        there = {(kind, key_of(obj)): obj for kind, objects in world.items() for obj in objects}
        found = []
        for item in items:
            other = there.get((item.kind, key_of(item.obj)))
            if other is not None and not (item.shared and _says_the_same(item.obj, other)):
                found.append(f"{item.title} is at the target too")
        return found

    async def _prepare(self, journal: Journal) -> Journal:
        """Copy all, compare it, and commit."""
        await self._source.set_mark(Ref(CLUSTER, self._cluster), journal.id)
        await self._until_left_alone()
        await self._target.ensure_namespace(self._cluster.namespace)
        for _ in range(_MOST_PASSES):
            items = await self._items()
            if why := hindrances(items):
                raise CliError(f"Cluster {self._cluster}: {_some(why)}", "Wait for it and run it again, or use --abort")
            uids = await self._copy(journal, items)
            wrong = await self._synchronise(items, uids)
            if not wrong:
                return await self._commit(journal, items, uids)
        raise CliError(f"copies differ from what they are to be: {_some(wrong)}", AGAIN)

    async def _until_left_alone(self) -> None:
        """Controllers of the source have seen the mark, or there are none."""
        try:
            async with asyncio.timeout(SEEN_SECONDS):
                while not await self._source.has_seen_the_mark(self._cluster):
                    if not await self._source.acting_controllers(datetime.now(UTC)):
                        return
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError as error:
            acting = ", ".join(await self._source.acting_controllers(datetime.now(UTC)))
            text = f"controllers of the source ({acting}) don't say that they leave Cluster {self._cluster} alone"
            raise CliError(text, AGAIN) from error

    async def _copies(self, journal: Journal) -> list[tuple[Item, str]]:
        """What this move has made at the target, owners first, each with the UID of what it is a copy of."""
        world = await self._target.world(self._cluster.namespace)
        found = []
        for kind, objects in world.items():
            for obj in objects:
                move, _, uid = annotations_of(obj).get(MOVING_ANNOTATION, "").partition("/")
                if move == journal.id:
                    found.append((Item(kind, obj), uid))
        return found

    async def _copy(self, journal: Journal, items: list[Item]) -> dict[str, str]:
        """Make what is not there. Answers UIDs at the source to those at the target, the marks among them."""
        uids = {old: uid_of(item.obj) for item, old in await self._copies(journal)} | {journal.source: journal.target}
        for item in items:
            old = uid_of(item.obj)
            if old in uids:
                continue
            body = body_of(item.obj, uids)
            mark = {MOVING_ANNOTATION: f"{journal.id}/{old}"}
            body["metadata"]["annotations"] = {**(body["metadata"].get("annotations") or {}), **mark}
            uids[old] = uid_of(await self._made(item, body))
        self._say(f"{len(items)} objects are at the target, paused")
        return uids

    async def _made(self, item: Item, body: dict[str, Any]) -> Mapping[str, Any]:
        """Make it at the target, unless it is one that several share and is there already. Raises CliError."""
        try:
            return await self._target.client.create(item.kind, body)
        except ApiError as error:
            if not error.already_exists:
                raise
            there = await self._target.client.get(item.kind, key_of(item.obj))
            if not item.shared or not _says_the_same(item.obj, there):
                raise CliError(f"{item.title} is at the target too", "Remove it there, or use --abort") from error
            return there

    async def _synchronise(self, items: list[Item], uids: Mapping[str, str]) -> list[str]:
        """Write what differs, and answer what differs all the same."""
        wrong = []
        for item in items:
            there = await self._target.client.get(item.kind, key_of(item.obj))
            if MOVING_ANNOTATION not in annotations_of(there):
                continue  # it was there before, and says the same
            if differences(item.obj, there, uids):
                there = await self._write(item, there, uids)
            wrong += [f"{item.title}: {path}" for path in _differences(item, there, uids)]
        return wrong

    async def _write(self, item: Item, there: Obj, uids: Mapping[str, str]) -> dict[str, Any]:
        ref = ref_of(item.kind, there)
        body = body_of(item.obj, uids)
        mark = {MOVING_ANNOTATION: annotations_of(there)[MOVING_ANNOTATION]}
        body["metadata"]["annotations"] = {**(body["metadata"].get("annotations") or {}), **mark}
        patch = _patch({name: value for name, value in there.items() if name not in {"status", "metadata"}}, body)
        patch.pop("metadata", None)
        for name in ("annotations", "labels", "finalizers", "ownerReferences"):
            had, wanted = there["metadata"].get(name), body["metadata"].get(name)
            if had != wanted:
                patch.setdefault("metadata", {})[name] = _patch(had, wanted) if isinstance(wanted, Mapping) else wanted
        now = await self._target.client.merge_patch(ref, patch) if patch else dict(there)
        status = status_to_be(item.obj, uids)
        if status is not None and status != now.get("status"):
            now = await self._target.client.patch_status(ref, _patch(now.get("status"), status))
        return {**now, "apiVersion": there["apiVersion"], "kind": there["kind"]}

    async def _commit(self, journal: Journal, items: list[Item], uids: Mapping[str, str]) -> Journal:
        """The target knows of it first, so that no source without a target is ever committed."""
        committed = journal.committed(items, uids)
        await self._target.remember(journal)
        await self._source.remember(committed)
        self._say("committed: the copies are what counts from now on")
        return committed

    # After the commit

    async def _settle(self, journal: Journal) -> int:
        await self._target.remember(journal)
        items = await self._items_at_target(journal)
        given = transfers(items, journal.uids, (journal.source, journal.target))
        hosts = await self._hosts.hand_over(given)
        former = {new: old for old, new in journal.uids.items()}
        for cluster in (item.obj for item in items if item.kind == CLUSTER):
            await self._hosts.hand_over_endpoint(cluster, former[uid_of(cluster)])
        self._say(f"{hosts} hosts are handed over")
        machines = [item.obj for item in items if item.kind == MACHINE]
        await rename_owners(self._target, self._cluster, machines, journal.uids)
        for entry in reversed(journal.entries):
            if not entry.shared:
                await self._source.remove(entry.ref(self._cluster.namespace, at_target=False))
        self._say("the source's objects are gone")
        for entry in reversed(journal.entries):
            await self._target.set_mark(entry.ref(self._cluster.namespace, at_target=True), None)
        await self._target.save()
        await self._source.remember(journal.done())
        return hosts

    async def _items_at_target(self, journal: Journal) -> list[Item]:
        world = await self._target.world(self._cluster.namespace)
        there = {uid_of(obj): Item(kind, obj) for kind, objects in world.items() for obj in objects}
        return [there[entry.new_uid] for entry in journal.entries if entry.new_uid in there]


def _differences(item: Item, there: Obj, uids: Mapping[str, str]) -> list[str]:
    found = differences(item.obj, there, uids)
    return [path for path in found if item.kind.name not in _RECOMPUTED or path.partition(".")[0] != "status"]


def _says_the_same(one: Obj, other: Obj) -> bool:
    skipped = {"metadata", "status", "apiVersion", "kind"}
    first, second = ({name: value for name, value in obj.items() if name not in skipped} for obj in (one, other))
    return first == second


def _patch(before: Any, after: Any) -> dict[str, Any]:
    """The JSON merge patch that makes the mapping ``before`` the mapping ``after``."""
    had = before if isinstance(before, Mapping) else {}
    patch: dict[str, Any] = {name: None for name in had if name not in after}
    for name, value in after.items():
        if name in had and had[name] == value:
            continue
        both = isinstance(value, Mapping) and isinstance(had.get(name), Mapping)
        patch[name] = _patch(had[name], value) if both else value
    return patch


def _keys(items: list[Item], kind: str) -> set[Key]:
    return {key_of(item.obj) for item in items if item.kind.name == kind}


def _some(why: list[str]) -> str:
    more = len(why) - _MOST_NAMED
    return "; ".join(why[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

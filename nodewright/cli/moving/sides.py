"""One of the two management clusters of a move: what is read there, and the writes that may be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from api.names import MOVING_ANNOTATION, SYSTEM_NAMESPACE
from controllers.kernel.conditions import find, parse_time
from controllers.kernel.refs import (
    CLUSTER,
    LEASE,
    NAMESPACE,
    SECRET,
    Key,
    Kind,
    Ref,
    annotations_of,
    ref_of,
    spec_of,
    status_of,
    uid_of,
)
from nodewright.cli.exits import CliError
from nodewright.cli.moving import journal
from nodewright.cli.moving.graph import KINDS
from nodewright.cli.moving.journal import DamagedJournalError, Journal, key_of_journal
from nodewright.runtime.kube.client import ObjectClient
from nodewright.runtime.kube.errors import ApiError

_PAGE = 500


class Side:
    """``title``: for messages, ``the source`` or ``the target``."""

    def __init__(self, client: ObjectClient, title: str) -> None:
        self.client = client
        self.title = title

    async def save(self) -> None:
        """Returns once all that was written here survives a power cut: of a cluster, at once."""

    async def mark(self) -> str:
        """Of this management cluster, as its hosts carry it. Raises CliError if it has none."""
        found = await self.find(NAMESPACE, Key("", "kube-system"))
        if found is None:
            raise CliError(f"{self.title} has no namespace kube-system, whose UID is the mark of its hosts")
        return uid_of(found)

    async def find(self, kind: Kind, key: Key) -> dict[str, Any] | None:
        try:
            return await self.client.get(kind, key)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def world(self, namespace: str) -> dict[Kind, list[dict[str, Any]]]:
        """All objects of the kinds that move. Raises CliError if one of the kinds is not served."""
        return {kind: await self._all(kind, namespace) for kind in KINDS}

    async def journal(self, cluster: Key) -> tuple[Journal, Ref, str] | None:
        """The record of a move with its Secret and resourceVersion. Raises CliError for one that can't be read."""
        secret = await self.find(SECRET, key_of_journal(cluster))
        if secret is None:
            return None
        try:
            return journal.read(secret), ref_of(SECRET, secret), str(secret["metadata"]["resourceVersion"])
        except DamagedJournalError as error:
            raise CliError(f"{self.title}: {error}", "Look at it; a Secret of that name blocks each move") from error

    async def remember(self, now: Journal) -> None:
        """Create or overwrite the record. Raises CliError if it is that of another move."""
        before = await self.journal(now.cluster)
        if before is None:
            await self.client.create(SECRET, now.body())
            return
        if before[0].id != now.id:
            raise CliError(f"another move of Cluster {now.cluster} has begun at {self.title} ({before[0].id})")
        if before[0] != now:
            await self.client.merge_patch(before[1], {"data": now.data()}, resource_version=before[2])

    async def forget(self, cluster: Key) -> None:
        before = await self.journal(cluster)
        if before is not None:
            await self.client.delete(before[1])

    async def set_mark(self, ref: Ref, value: str | None) -> None:
        """The annotation by which controllers leave an object alone. Nothing happens to one that is gone."""
        now = await self.find(ref.kind, ref.key)
        if now is None or (ref.uid and uid_of(now) != ref.uid):
            return
        if annotations_of(now).get(MOVING_ANNOTATION) != value:
            patch = {"metadata": {"annotations": {MOVING_ANNOTATION: value}}}
            await self.client.merge_patch(ref_of(ref.kind, now), patch)

    async def remove(self, ref: Ref) -> None:
        """The object alone: its finalizers are taken off first, and what it owns stays."""
        now = await self.find(ref.kind, ref.key)
        if now is None or uid_of(now) != ref.uid:
            return
        if now["metadata"].get("finalizers"):
            version = str(now["metadata"]["resourceVersion"])
            await self.client.merge_patch(ref, {"metadata": {"finalizers": None}}, resource_version=version)
        try:
            await self.client.delete(ref, "Orphan")
        except ApiError as error:
            if not error.not_found:
                raise
        left = await self.find(ref.kind, ref.key)
        if left is not None and uid_of(left) == ref.uid:  # the finalizer "orphan", where nobody collects garbage
            try:
                await self.client.merge_patch(ref, {"metadata": {"finalizers": None}})
            except ApiError as error:  # somebody does, and was faster
                if not error.not_found:
                    raise

    async def ensure_namespace(self, name: str) -> None:
        if await self.find(NAMESPACE, Key("", name)) is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await self.client.create(NAMESPACE, body)

    async def acting_controllers(self, now: datetime) -> list[str]:
        """Holders of Leases of ours that have not run out."""
        leases = await self._all(LEASE, SYSTEM_NAMESPACE)
        ours = [each for each in leases if str(each["metadata"]["name"]).startswith("nodewright")]
        return [str(spec_of(each)["holderIdentity"]) for each in ours if _is_held(spec_of(each), now)]

    async def has_seen_the_mark(self, cluster: Key) -> bool:
        """Whether the controllers say on the Cluster that they leave it alone."""
        found = await self.find(CLUSTER, cluster)
        condition = find(status_of(found).get("conditions"), "Paused") if found is not None else None
        return condition is not None and MOVING_ANNOTATION in str(condition.get("message"))

    async def _all(self, kind: Kind, namespace: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token = ""
        try:
            while True:
                page = await self.client.list_page(kind, _PAGE, token, namespace)
                found += [{"apiVersion": _version(kind), "kind": kind.name, **each} for each in page.items]
                token = page.continue_
                if not token:
                    return found
        except ApiError as error:
            if error.not_found:
                text = f"{self.title} does not serve {kind.plural} of {_version(kind)}"
                raise CliError(text, "Install Nodewright's kinds there first: `nodewright install`") from error
            raise


def _version(kind: Kind) -> str:
    return f"{kind.group}/{kind.version}" if kind.group else kind.version


def _is_held(spec: Mapping[str, Any], now: datetime) -> bool:
    renewed, seconds = parse_time(spec.get("renewTime")), spec.get("leaseDurationSeconds")
    if not spec.get("holderIdentity") or renewed is None or not isinstance(seconds, int):
        return False
    return (now - renewed).total_seconds() < seconds

"""Follow what hosts report of their bootstrap, and keep the newest report of each that its own token has signed.

Only the tokens of Machines that are waited for are asked for, so nobody makes us read a Secret, or remember anything,
by writing Events. A cluster is followed for as long as hosts of it are waited for, and no longer.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Callable, Mapping
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass
from typing import Any

import structlog

from api import names
from controllers.bootstrap import report, reporting_access
from controllers.bootstrap.credentials import token_key
from controllers.kernel.host_report import Report
from controllers.kernel.refs import EVENT, SECRET, Key, Obj, labels_of
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, KubeError, error_of_event

_log = structlog.get_logger("nodewright.reports")

Listener = Callable[[str], None]
Clients = Callable[[Key | None], KubeClient | None]
"""Cluster (None: the management cluster) → connection; None while there is no contact."""


@dataclass(frozen=True, slots=True)
class Pauses:
    """Seconds. ``relist``: until Events that came before somebody waited for them are looked for; ``secret``: between
    two reads of one token's Secret; ``retry``: after an answer that was none; ``refused``: after a refusal.
    """

    relist: float = 5.0
    secret: float = 5.0
    retry: float = 2.0
    refused: float = 30.0
    watch: int = 240


@dataclass(slots=True)
class _Waiting:
    """A host that is waited for. ``secret``: of its token, "" until it was read."""

    machine_uid: str
    cluster: Key | None
    token_id: str
    secret: str = ""
    not_before: float = 0.0
    report: Report | None = None


class HostReports:
    """``look`` says whom to wait for; listeners hear the UID of a Machine whose host has said something new.

    One event loop; ``close`` at the end.
    """

    def __init__(self, clients: Clients, pauses: Pauses | None = None) -> None:
        self._clients = clients
        self._pauses = pauses or Pauses()
        self._by_machine: dict[str, _Waiting] = {}
        self._by_token: dict[tuple[Key | None, str], dict[str, _Waiting]] = {}
        """By Machine: several may name one token, but its Secret says which of them it was made for."""
        self._followers: dict[Key | None, asyncio.Task[None]] = {}
        self._lists: dict[Key | None, asyncio.Event] = {}
        self._prepared: set[Key | None] = set()
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def look(self, machine_uid: str, cluster: Key | None, token_id: str) -> Report | None:
        """What the host with this token said last; from now on it is listened to."""
        known = self._by_machine.get(machine_uid)
        if known is not None and (known.cluster, known.token_id) == (cluster, token_id):
            return known.report
        if known is not None:
            self.forget(machine_uid)
        waiting = _Waiting(machine_uid, cluster, token_id)
        self._by_machine[machine_uid] = waiting
        self._by_token.setdefault((cluster, token_id), {})[machine_uid] = waiting
        self._lists.setdefault(cluster, asyncio.Event()).set()
        if cluster not in self._followers:
            work = self._follow_while_needed(cluster)
            self._followers[cluster] = asyncio.create_task(work, name=f"reports of {cluster}", context=Context())
        return None

    def forget(self, machine_uid: str) -> None:
        """Nobody waits for this host any more: it has joined, or its Machine has gone."""
        waiting = self._by_machine.pop(machine_uid, None)
        if waiting is None:
            return
        named = self._by_token.get((waiting.cluster, waiting.token_id), {})
        named.pop(machine_uid, None)
        if not named:
            self._by_token.pop((waiting.cluster, waiting.token_id), None)
        if not self._is_needed(waiting.cluster):
            follower = self._followers.pop(waiting.cluster, None)
            if follower is not None:
                follower.cancel()

    async def close(self) -> None:
        tasks = [*self._followers.values()]
        self._followers.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_needed(self, cluster: Key | None) -> bool:
        return any(waiting.cluster == cluster for waiting in self._by_machine.values())

    async def _follow_while_needed(self, cluster: Key | None) -> None:
        while True:
            pause = self._pauses.retry
            try:
                client = self._clients(cluster)
                if client is not None:
                    await self._prepare(cluster, client)
                    await self._follow(cluster, client)
                    pause = 0.0
            except ApiError as error:
                pause = self._pauses.refused if error.code in (401, 403, 404) else pause
                _log.info("reports of hosts can't be read", cluster=str(cluster or ""), code=error.code)
            except KubeError as error:
                _log.debug("reports of hosts can't be read", cluster=str(cluster or ""), error=error.plain)
            except Exception:
                _log.exception("reports of hosts can't be read", cluster=str(cluster or ""))
            await asyncio.sleep(pause)

    async def _prepare(self, cluster: Key | None, client: KubeClient) -> None:
        """Make what hosts need to report, once for each process. Where that is not allowed somebody else has to."""
        if cluster in self._prepared:
            return
        for kind, body in reporting_access.objects():
            try:
                await client.create(kind, body)
            except ApiError as error:
                if error.already_exists:
                    continue
                if error.code not in (403, 404):
                    raise
                _log.warning(
                    "hosts may not be able to report how they join; docs/tasks/join.md has the manifest",
                    cluster=str(cluster or ""), kind=kind.name, code=error.code,
                )  # fmt: skip
                break
        self._prepared.add(cluster)

    async def _follow(self, cluster: Key | None, client: KubeClient) -> None:
        """One list and one watch. Ends when the watch does, or when there is somebody new to look for."""
        wanted = self._lists[cluster]
        wanted.clear()
        continue_, version = "", ""
        while True:
            page = await client.list_page(EVENT, 500, continue_, names.BOOTSTRAP_NAMESPACE)
            for event in page.items:
                await self._take(cluster, client, event)
            continue_, version = page.continue_, page.resource_version
            if not continue_:
                break
        watching = asyncio.create_task(self._watch(cluster, client, version))
        wanting = asyncio.create_task(wanted.wait())
        try:
            await asyncio.wait({watching, wanting}, return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                watching.result()
            else:
                await asyncio.wait({watching}, timeout=self._pauses.relist)
        finally:
            for task in (watching, wanting):
                task.cancel()
            await asyncio.gather(watching, wanting, return_exceptions=True)

    async def _watch(self, cluster: Key | None, client: KubeClient, version: str) -> None:
        batches = client.watch(EVENT, version, self._pauses.watch, names.BOOTSTRAP_NAMESPACE)
        async with aclosing(batches) as found:  # type: ignore[type-var]
            async for batch in found:
                for change in batch:
                    if change.get("type") == "ERROR":
                        raise error_of_event(change.get("object") or {})
                    if change.get("type") == "ADDED" and isinstance(change.get("object"), dict):
                        await self._take(cluster, client, change["object"])

    async def _take(self, cluster: Key | None, client: KubeClient, event: Mapping[str, Any]) -> None:
        if not isinstance(event.get("metadata"), dict):
            return
        for waiting in [*self._by_token.get((cluster, report.token_id_of(event)), {}).values()]:
            if await self._knows_secret(waiting, client):
                self._believe(waiting, event)

    def _believe(self, waiting: _Waiting, event: Obj) -> None:
        found = report.verified(event, waiting.secret)
        if found is None:
            _log.debug("a report that its token has not signed is passed over", token=waiting.token_id)
            return
        if self._by_machine.get(waiting.machine_uid) is not waiting:
            return
        if waiting.report is None or found.sequence > waiting.report.sequence:
            waiting.report = found
            for listener in self._listeners:
                listener(waiting.machine_uid)

    async def _knows_secret(self, waiting: _Waiting, client: KubeClient) -> bool:
        """A token counts for the Machine that it was made for alone."""
        now = asyncio.get_running_loop().time()
        if waiting.secret or now < waiting.not_before:
            return bool(waiting.secret)
        waiting.not_before = now + self._pauses.secret
        with contextlib.suppress(ApiError):
            found = await client.get(SECRET, token_key(waiting.token_id))
            if labels_of(found).get(names.TOKEN_MACHINE_UID_LABEL) == waiting.machine_uid:
                waiting.secret = _secret_in(found)
        if not waiting.secret:  # what it says is looked for again later
            asyncio.get_running_loop().call_later(self._pauses.secret, self._lists[waiting.cluster].set)
        return bool(waiting.secret)


def _secret_in(obj: Obj) -> str:
    data = obj.get("data")
    value = data.get("token-secret") if isinstance(data, dict) else None
    try:
        return base64.b64decode(value, validate=True).decode("ascii") if isinstance(value, str) else ""
    except (binascii.Error, ValueError):
        return ""

"""Machines as hosts of one SSHHostPool: claimed, joined by steps that run on them, given back clean."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog

from api.sshhostpool import SSHHost
from providers.base.capabilities import Channel
from providers.base.contract import (
    BOOTSTRAP_DATA,
    Host,
    HostIdentity,
    HostRequest,
    NeedsDrain,
    NeedsReplacement,
    Objects,
    Problem,
    Secrets,
    Shape,
    UpdateAnswer,
    Updated,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh import in_place, reaching, remote
from providers.ssh.claims import Claim, claim_for
from providers.ssh.config import API_VERSION, parse
from providers.ssh.connections import LOOK_TIMEOUT, Connections
from providers.ssh.contents import script_with_contents
from providers.ssh.looks import Seen, clock_of, host_of, one_each, seen, status_of
from providers.ssh.pool import POOL_KIND, Pool, read, some
from providers.ssh.rebooting import Rebooting
from providers.ssh.reboots import SILENT
from providers.ssh.repairs import repaired
from providers.ssh.trouble import HostError, Trouble

_log = structlog.get_logger("nodewright.ssh")

LOOKS_AT_ONCE = 256
"""Commands at a time in one look over a pool."""
INTENT_COUNTS = timedelta(minutes=3)
"""A claim is on the host 2 * 45 s after it was written into the status, or never."""
MOST_CONFIRMED = 10_000


class SSHProvider:
    """One pool. ``_choosing`` holds one creation at a time from the look until the host is claimed."""

    def __init__(self, pool: str, secrets: Secrets, objects: Objects) -> None:
        self._name = pool
        self._secrets = secrets
        self._objects = objects
        self._connections = Connections(secrets)
        self._rebooting = Rebooting(self._connections, secrets, objects)
        self._choosing = asyncio.Lock()
        self._turns = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._known: Pool | None = None
        """As it was read last."""
        self._last: dict[str, Seen] = {}
        """The last answer of each host."""
        self._confirmed: dict[str, None] = {}
        """Ids of claims that were seen on a host: what is no longer there is over."""

    async def validate(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        parsed = parse(config)
        try:
            pool = await self._pool()
        except ProviderError as error:
            if error.error_class in {ErrorClass.NOT_FOUND, ErrorClass.INVALID_CONFIGURATION}:
                return (Problem("pool", error.message),)
            raise
        if not pool.matching(parsed.host_selector, ""):
            return (Problem("hostSelector", f"no host of SSHHostPool {pool.name} has these labels"),)
        return ()

    async def create(self, request: HostRequest) -> Host:
        script = await self._script(request)
        async with self._choosing:
            pool = await self._pool()
            found = await self._mine(pool, request)
            if found is None:
                found = await self._claim(pool, request)
        assert found.claim is not None
        if request.preparation and script is None and not found.started:
            script_of_it = request.preparation.encode()
            await self._run(pool, found.host, remote.prepare(found.claim.id, script_of_it), step="prepare")
        if script is not None and not found.started:
            answer = await self._run(pool, found.host, remote.start(found.claim.id, script), step="start")
            if "started" not in answer:
                raise ProviderError(ErrorClass.CONFLICT, f"host {found.host.name} was given back meanwhile")
            found = self._noted(replace(found, started=True))
        return self._shown(found)

    async def delete(self, host: Host) -> None:
        """Begins it; the host goes on by itself, and is listed as Deleting until it is clean."""
        pool = await self._pool()
        name, _, claim_id = host.id.partition("/")
        if name not in pool.hosts:
            return
        found = await self._look(pool, pool.hosts[name])
        if found.trouble:
            raise ProviderError(ErrorClass.TIMEOUT, found.trouble)
        if found.claim is not None and found.claim.id == claim_id:
            script = remote.release(claim_id, found.claim.release, found.claim.command())
            await self._run(pool, found.host, script, step="release")

    async def get(self, machine_uid: str) -> Host | None:
        known = [one for one in self._last.values() if one.claim and one.claim.machine_uid == machine_uid]
        pool = await self._pool()
        for one in known:
            if one.host.name in pool.hosts:
                found = await self._look(pool, pool.hosts[one.host.name])
                if found.claim is not None and found.claim.machine_uid == machine_uid:
                    return host_of(self._name, found)
        every = one_each(await self._look_over(pool), pool.remembered)
        hosts = [host_of(self._name, one) for one in every if one.claim and one.claim.machine_uid == machine_uid]
        return hosts[0] if hosts else None

    async def list(self) -> tuple[Host, ...]:
        pool = await self._pool()
        every = one_each(await self._look_over(pool), pool.remembered)
        every = await repaired(self._connections, pool, every)
        await self._mirror(pool, every)
        return tuple(host for one in every if (host := host_of(self._name, one)) is not None)

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer:
        """In place where the kubelet's version is all that is different; the steps go on without us."""
        if request.spec_hash == host.spec_hash:
            return Updated()
        pool = await self._pool()
        name, _, claim_id = host.id.partition("/")
        if name not in pool.hosts:
            return NeedsReplacement(f"SSHHostPool {pool.name} has no host {name} any more")
        found = await self._look(pool, pool.hosts[name])
        if found.trouble:
            raise ProviderError(ErrorClass.TIMEOUT, found.trouble)
        if found.claim is None or found.claim.id != claim_id or found.releasing:
            raise ProviderError(ErrorClass.CONFLICT, f"host {name} is not this Machine's any more")
        if found.claim.spec_hash == request.spec_hash and not found.changing:
            return Updated()
        why = in_place.refusal(request, found.claim)
        if why:
            return NeedsReplacement(why)
        begun = found.changing == request.spec_hash[:64]  # it was drained before its steps began
        if not (drained or begun or in_place.leaves_pods(request, found.claim)):
            return NeedsDrain("its programs are changed on a host without pods")
        claim = found.claim.changed_to(request)
        # Steps that have begun are on the host with all that they need, and are not sent a second time.
        steps = b"" if begun else await script_with_contents(request.upgrade, self._secrets)
        script = remote.change(claim_id, claim.text(), request.spec_hash, steps)
        answer = in_place.answer_of(await self._run(pool, found.host, script, step="change"))
        if isinstance(answer, Updated):
            self._noted(replace(found, claim=claim, changing="", failure=""))
        return answer

    async def rebind(self, host: Host, old: HostIdentity, new: HostIdentity) -> None:
        """The claim on the host is written anew under its lock; its id stays, and so do all steps that run there."""
        pool = await self._pool()
        name, _, claim_id = host.id.partition("/")
        if name not in pool.hosts:
            raise ProviderError(ErrorClass.NOT_FOUND, f"SSHHostPool {pool.name} has no host {name} any more")
        found = await self._look(pool, pool.hosts[name])
        if found.trouble:
            raise ProviderError(ErrorClass.TIMEOUT, found.trouble)
        if found.claim is None or found.claim.id != claim_id or found.releasing:
            raise ProviderError(ErrorClass.NOT_FOUND, f"host {name} has no claim {claim_id} any more")
        if found.claim.is_of(new):
            return
        if not found.claim.is_of(old):
            raise ProviderError(ErrorClass.CONFLICT, f"host {name} is not that of Machine {old.namespace}/{old.name}")
        other = next((one for one in await self._look_over(pool) if one.claim and one.claim.is_of(new)), None)
        if other is not None:
            raise ProviderError(ErrorClass.CONFLICT, f"Machine {new.namespace}/{new.name} has host {other.host.name}")
        claim = found.claim.rebound(new)
        answer = await self._run(
            pool, found.host, remote.rebind(claim_id, old.machine_uid, claim.text()), step="rebind"
        )
        if Claim.read(answer.get("claim", "")) != claim:
            raise ProviderError(ErrorClass.CONFLICT, f"the claim on host {name} was changed meanwhile")
        self._noted(replace(found, claim=claim))

    async def reboot(self, host: Host, attempt: str) -> None:
        """Over SSH, or by the host's power command while it does not answer (``providers.ssh.reboots``)."""
        pool = await self._pool()
        await self._rebooting.reboot(pool, await self._held(pool, host), attempt)

    async def connect(self, host: Host, port: int) -> Channel:
        """By the kept connection to its sshd, which opens one to its own localhost. Asked every few seconds: the last
        look at the host counts."""
        pool, known = self._known, self._last.get(host.id.partition("/")[0])
        if pool is None or known is None or known.trouble or not _is_held(known, host):
            pool = await self._pool()
            known = await self._held(pool, host)
        return await reaching.connect(self._connections, pool, known.host, port)

    async def run_script(self, host: Host, script: str, within: float) -> str:
        """See ``providers.base.capabilities.RunsScripts``."""
        pool = await self._pool()
        return await reaching.run(self._connections, pool, (await self._held(pool, host)).host, script, within)

    async def _held(self, pool: Pool, host: Host) -> Seen:
        """As it is now. Raises ProviderError (NotFound: it is gone, or another Machine's)."""
        name = host.id.partition("/")[0]
        found = await self._look(pool, pool.hosts[name]) if name in pool.hosts else None
        if found is None or not _is_held(found, host):
            raise ProviderError(ErrorClass.NOT_FOUND, f"host {name} is not this Machine's any more")
        return found

    async def shape(self, config: Mapping[str, Any]) -> Shape:
        return Shape(dict(parse(config).capacity))

    async def close(self) -> None:
        """End all connections."""
        await self._connections.close()

    # Claims

    async def _mine(self, pool: Pool, request: HostRequest) -> Seen | None:
        """The host that the Machine has already; None if it has none. Raises ProviderError where nobody can tell."""
        uid = request.identity.machine_uid
        names = [name for name, claim in pool.remembered.items() if claim.machine_uid == uid]
        names += [name for name, one in self._last.items() if one.claim and one.claim.machine_uid == uid]
        for name in dict.fromkeys(name for name in names if name in pool.hosts):
            found = await self._look(pool, pool.hosts[name])
            if found.trouble:
                raise ProviderError(ErrorClass.TIMEOUT, f"it may have this host, which does not tell: {found.trouble}")
            if found.claim is not None and found.claim.machine_uid == uid:
                return self._not_going(found)
        if self._last.keys() >= pool.hosts.keys():
            return None
        for found in await self._look_over(pool):
            if found.claim is not None and found.claim.machine_uid == uid:
                return self._not_going(found)
        return None

    @staticmethod
    def _not_going(found: Seen) -> Seen:
        if found.releasing:
            raise ProviderError(ErrorClass.CONFLICT, f"host {found.host.name} is being given back")
        return found

    async def _claim(self, pool: Pool, request: HostRequest) -> Seen:
        """In the status of the pool first, then on the host. Raises ProviderError (StockOut: none is free)."""
        parsed, refused = parse(request.config), []
        matching = pool.matching(parsed.host_selector, request.failure_domain)
        if not matching:
            text = f"{_where(pool, request)} has no host with the labels of hostSelector"
            raise ProviderError(ErrorClass.NOT_FOUND, text)
        for host in sorted(matching, key=lambda each: bool(each.name in self._last and self._last[each.name].trouble)):
            known = self._last.get(host.name)
            if known is not None and not known.trouble and known.state != "Free":
                refused.append(f"{host.name} {known.state}")
                continue
            found = await self._look(pool, host)
            if not found.may_be_claimed:
                refused.append(f"{host.name} {found.clock_fault if found.state == 'Free' else found.state}")
                continue
            claim = claim_for(request, parsed)
            intent = replace(found, claim=claim)
            pool = await self._record(pool, intent)
            self._last[host.name] = intent  # a cut connection leaves open whether it was made
            found, why = await self._taken(pool, found, claim)
            if found.claim is not None and found.claim.id == claim.id:
                return found
            if why:
                pool = await self._withdraw(pool, found)
            refused.append(why or f"{host.name} {found.state}")
        raise ProviderError(ErrorClass.STOCK_OUT, f"{_where(pool, request)} has no free host for it: {some(refused)}")

    async def _taken(self, pool: Pool, free: Seen, claim: Claim) -> tuple[Seen, str]:
        """The host after the claim was to be made on it, and why it could not be. A host that says by itself that it
        can't (its disk is full) and has no claim then is passed over. Raises ProviderError where nobody can tell.
        """
        host, why = free.host, ""
        try:
            script = remote.claim(claim.id, claim.text())
            taken = seen(host, await self._connections.run(host, pool.secret, script, step="claim"))
        except HostError as error:
            if error.trouble is not Trouble.FAILED:
                raise error.as_provider_error() from error
            taken, why = await self._look(pool, host), str(error)
            if taken.trouble:
                raise error.as_provider_error() from error
        return self._noted(replace(taken, hostname=free.hostname, clock=free.clock)), why

    async def _record(self, pool: Pool, intent: Seen) -> Pool:
        status = {"hosts": status_of([intent], {})["hosts"]}
        return read(await self._objects.report(pool.object, status))

    async def _withdraw(self, pool: Pool, found: Seen) -> Pool:
        """Take back what was recorded of a claim that was not made: were the host lost now, it would count as held."""
        name = found.host.name
        kept = ((pool.object.get("status") or {}).get("hosts") or {}).get(name) or {}
        patch = status_of([found], {"hosts": {name: kept}}).get("hosts")
        return read(await self._objects.report(pool.object, {"hosts": patch})) if patch else pool

    async def _mirror(self, pool: Pool, every: tuple[Seen, ...]) -> None:
        """What counts lies on the hosts: a status that can't be written is no reason to fail."""
        patch = status_of([self._with_intent(pool, one) for one in every], pool.object.get("status") or {})
        if not patch or self._choosing.locked():
            return
        try:
            await self._objects.report(pool.object, patch)
        except ProviderError as error:
            if error.error_class is not ErrorClass.CONFLICT:
                _log.warning("status of a pool can't be written", pool=pool.name, error=error.message)

    def _with_intent(self, pool: Pool, found: Seen) -> Seen:
        """A host that another controller has just said it claims counts as claimed until that is surely over."""
        intent = pool.remembered.get(found.host.name)
        if found.state != "Free" or intent is None or intent.id in self._confirmed:
            return found
        made = intent.made()
        return replace(found, claim=intent) if made and datetime.now(UTC) - made < INTENT_COUNTS else found

    # Looks

    async def _pool(self) -> Pool:
        pool = self._known = read(await self._objects.read(API_VERSION, POOL_KIND, self._name))
        self._connections.keep_only(pool.hosts.values())
        for name in self._last.keys() - pool.hosts.keys():
            del self._last[name]
        return pool

    async def _look_over(self, pool: Pool) -> tuple[Seen, ...]:
        async def bounded(host: SSHHost) -> Seen:
            async with self._turns:
                return await self._look(pool, host)

        return tuple(await asyncio.gather(*(bounded(host) for host in pool.hosts.values())))

    async def _look(self, pool: Pool, host: SSHHost) -> Seen:
        """Never raises HostError: a host that does not answer is as it was, with its trouble."""
        try:
            answer = await self._connections.run(host, pool.secret, remote.look(), within=LOOK_TIMEOUT)
            found = replace(seen(host, answer), clock=clock_of(answer, datetime.now(UTC).timestamp()))
        except HostError as error:
            before = self._last.get(host.name) or Seen(host, claim=pool.remembered.get(host.name))
            found = replace(before, host=host, trouble=str(error), silent=error.trouble in SILENT)
        record = pool.reboots.get(host.name)
        of_claim = record is not None and found.claim is not None and record.claim == found.claim.id
        return self._noted(replace(found, reboot=record if of_claim else None))

    def _noted(self, found: Seen) -> Seen:
        self._last[found.host.name] = found
        if found.claim is not None and not found.trouble:
            self._confirmed[found.claim.id] = None
            while len(self._confirmed) > MOST_CONFIRMED:
                del self._confirmed[next(iter(self._confirmed))]
        return found

    async def _run(self, pool: Pool, host: SSHHost, script: str, *, step: str) -> Mapping[str, str]:
        try:
            return await self._connections.run(host, pool.secret, script, step=step)
        except HostError as error:
            raise error.as_provider_error() from error

    def _shown(self, found: Seen) -> Host:
        host = host_of(self._name, found)
        assert host is not None
        return host

    async def _script(self, request: HostRequest) -> bytes | None:
        """Read before a host is claimed: without its data there is none."""
        if request.bootstrap is None:
            return None
        name = request.bootstrap.secret_name
        data = await self._secrets.read(name)
        if BOOTSTRAP_DATA not in data:
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"Secret {name} has no key {BOOTSTRAP_DATA}")
        return data[BOOTSTRAP_DATA]


def _is_held(found: Seen, host: Host) -> bool:
    """Whether it is the one of the Machine still."""
    return found.claim is not None and found.claim.id == host.id.partition("/")[2] and not found.releasing


def _where(pool: Pool, request: HostRequest) -> str:
    zone = f" in zone {request.failure_domain}" if request.failure_domain else ""
    return f"SSHHostPool {pool.name}{zone}"

"""All hosts of all providers, by Machine UID: what a reconcile may read, and where its host actions go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import structlog

from controllers.kernel.actions import CreateHost, DeleteHost, HostAction, RebootHost
from controllers.kernel.bootstrapping import NO_SUPPORT, Support
from controllers.kernel.refs import MACHINE, Key, Ref
from controllers.kernel.view import (
    NOBODY_ASKED,
    UNRECORDED,
    ConfigChecked,
    ConfigProblem,
    HostAbsent,
    HostNeed,
    HostPresent,
    HostRead,
    HostReads,
    HostUnknown,
    LiveCheck,
    ShapeRead,
    ShapeUnknown,
)
from controllers.orphans.sweep import HostList, Orphan
from nodewright.runtime.hosts.calls import call_of
from nodewright.runtime.hosts.configs import Checked, Configs
from nodewright.runtime.hosts.consoles import Consoles
from nodewright.runtime.hosts.live_checks import LiveChecks
from nodewright.runtime.hosts.options import HostOptions
from nodewright.runtime.hosts.poller import Poller
from nodewright.runtime.hosts.quotas import Quotas
from nodewright.runtime.hosts.scope import Dependencies, Scope
from nodewright.runtime.hosts.shapes import ASKED, Shapes
from nodewright.runtime.hosts.unused import LastAsked
from providers.base.capabilities import Quota
from providers.base.contract import Host, HostIdentity, HostState, Objects, Problem, Provider, Secrets
from providers.base.errors import ErrorClass, ProviderError
from providers.base.registry import Registry, ScopeKey

_log = structlog.get_logger("nodewright.hosts")


class HostDirectory:
    """One event loop. ``now`` is the wall clock of attempts; all else follows the loop's clock."""

    def __init__(
        self,
        registry: Registry,
        options: HostOptions | None = None,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        seed: int | None = None,
        may_call: Callable[[], bool] = lambda: True,
    ) -> None:
        self._registry = registry
        random = Random(seed)  # noqa: S311  (jitter)
        self._deps = Dependencies(options or HostOptions(), now, self._changed, random, may_call)
        self.management_cluster = ""
        """Mark that new hosts get, and changed ones; "" until it is known."""
        self._secrets_in: Callable[[str], Secrets] | None = None
        self._objects_in: Callable[[str], Objects] | None = None
        self._scopes: dict[ScopeKey, Scope] = {}
        self._pollers: dict[ScopeKey, Poller] = {}
        self._configs = Configs(registry)
        self._home: dict[str, ScopeKey] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._shapes = Shapes()
        self._live_checks = LiveChecks(self._changed)
        self._consoles = Consoles(self._changed)
        self._quotas = Quotas()
        self._unlisted: dict[ScopeKey, Scope] = {}
        """Scopes that were only ever asked about configs: their hosts are nobody's business here."""
        self._last_asked = LastAsked()
        self._going: set[asyncio.Task[None]] = set()

    def listen(self, listener: Callable[[str], None]) -> None:
        """``listener`` gets the UID of each Machine whose host facts may have changed."""
        self._listeners.append(listener)

    def read_secrets_by(self, secrets_in: Callable[[str], Secrets]) -> None:
        """``secrets_in(namespace)`` reads for the providers that are opened from now on."""
        self._secrets_in = secrets_in

    def read_objects_by(self, objects_in: Callable[[str], Objects]) -> None:
        """As ``read_secrets_by``, for objects of providers' own kinds."""
        self._objects_in = objects_in

    def look(self, need: HostNeed) -> HostReads | None:
        """What is known of the host. None: a list is under way; the listener is called when it has ended."""
        checked = Checked(None, ()) if need.config is None else self._configs.check(need.config, need.namespace)
        uid = need.machine_uid
        problems = (*need.problems, *(_below(need.config_path, problem) for problem in checked.problems))
        if not uid:
            live = self._live_check(need, checked)
            return HostReads(HostUnknown("only its config was to be checked"), problems, live=live)
        known = self._known_scope(need)
        if checked.scope is None and uid not in self._home:
            read = self._look_everywhere(need)
            return None if read is None else HostReads(self._doubted(read, need, False), problems)
        if checked.scope is not None:
            self._scope(checked.scope, need.config, need.namespace)
        read = self._look_where_it_may_be(need, checked.scope)
        if read is None:
            return None
        scope = self._scopes[self._home[uid]]
        answer = scope.answer(uid, need.spec_hash)
        return HostReads(
            self._doubted(read, need, known or need.made_in == UNRECORDED),
            problems,
            answer=answer.value if answer else None,
            attempt=scope.attempt(uid, need.spec_hash),
            in_flight=scope.in_flight(uid),
            answered_at=answer.at if answer else None,
            scope=scope.name if isinstance(read, HostPresent) else "",
            queued=scope.queued(uid),
            live=self._live_check(need, checked),
            support=self._support(need),
            console=self._consoles.look_for(read.host, scope) if need.console and isinstance(read, HostPresent) else "",
        )

    def _support(self, need: HostNeed) -> Support:
        """Only where bootstrap data is asked for: it costs a look at the config."""
        if need.bootstrap is None or not need.config:
            return NO_SUPPORT
        return Support(*self._registry.bootstrapping(need.config))

    def shape(self, config: Mapping[str, Any], namespace: str) -> ShapeRead:
        """What a host of ``config`` would be like for a Machine in ``namespace``; it is asked in the background."""
        checked = self._configs.check(config, namespace)
        if checked.scope is None or checked.problems:
            return ShapeUnknown(self.faults(config, namespace) or "no provider has such a config")
        answer = self._shapes.look(config, self._unlisted_scope(checked.scope, config, namespace))
        return ASKED if answer is None else answer

    async def consoles_are_known(self) -> None:
        """Wait until no provider is being asked for a console."""
        await self._consoles.settled()

    async def shapes_are_known(self) -> None:
        """Wait until no provider is being asked for a shape."""
        await self._shapes.settled()

    def submit(self, action: HostAction) -> bool:
        """Start a provider call in the background. False: refused for now, as the next ``look`` tells.

        Raises LookupError if no provider has the action's config (the plan should have seen the problem).
        """
        action = self._marked(action)
        call = call_of(action)
        about = action if isinstance(action, DeleteHost | RebootHost) else action.request
        config, namespace = about.config, about.identity.namespace
        home, asked = self._home.get(call.uid), self._configs.check(config, namespace).scope
        key = (asked or home) if isinstance(action, CreateHost) else (home or asked)
        if key is None:
            raise LookupError(f"{action.machine}: no provider for its config")
        self._home[call.uid] = key
        return self._scope(key, config, namespace).submit(action)

    def _marked(self, action: HostAction) -> HostAction:
        if isinstance(action, DeleteHost | RebootHost):
            return action
        identity = replace(action.request.identity, management_cluster=self.management_cluster)
        return replace(action, request=replace(action.request, identity=identity))

    def know(self, config: Mapping[str, Any], namespace: str) -> None:
        """List the scope of ``config`` though no Machine of it may be there: one may have left a host behind."""
        checked = self._configs.check(config, namespace)
        if checked.scope is not None and not checked.problems:
            self._scope(checked.scope, config, namespace)

    def lists(self) -> tuple[HostList, ...]:
        """The last list of each scope, as it is known."""
        wall, loop_now = self._deps.now(), asyncio.get_running_loop().time()
        found = []
        for scope in self._scopes.values():
            began = scope.listing.began
            moment = None if began is None else wall - timedelta(seconds=loop_now - began)
            found.append(HostList(scope.name, scope.listing.hosts(), moment, scope.list_problem))
        return tuple(found)

    def paused(self) -> Mapping[str, str]:
        """Why calls pause after failures, by scope; those whose calls go on are left out."""
        return {scope.name: scope.pause for scope in self._scopes.values() if scope.pause}

    def quotas(self) -> Mapping[str, tuple[Quota, ...]]:
        """By scope, as its provider last answered; it is asked in the background, unless its calls pause."""
        scopes = [scope for scope in self._scopes.values() if not scope.pause]
        return {scope.name: known for scope in scopes if (known := self._quotas.look({}, scope))}

    def provider_of(self, config: Mapping[str, Any], namespace: str) -> Provider:
        """The one with which ``config`` works. Raises ProviderError."""
        checked = self._configs.check(config, namespace)
        if checked.scope is None or checked.problems:
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, self.faults(config, namespace))
        return self._unlisted_scope(checked.scope, config, namespace).provider()

    def located(self, uid: str, namespace: str) -> tuple[Provider, Host] | None:
        """The host of a Machine in ``namespace`` as it was listed last, and its provider; None: it is not known."""
        key = self._home.get(uid)
        scope = self._scopes.get(key) if key is not None and key.may_have_hosts_of(namespace) else None
        host = scope.listing.host(uid) if scope is not None else None
        try:
            return None if scope is None or host is None else (scope.provider(), host)
        except ProviderError:
            return None

    def faults(self, config: Mapping[str, Any], namespace: str) -> str:
        """What is wrong with ``config``, "" if nothing is."""
        problems = self._configs.check(config, namespace).problems
        return "; ".join(f"{problem.path}: {problem.message}" for problem in problems)

    def remove(self, orphan: Orphan) -> bool:
        """Start to remove a host that no Machine knows. False: not now."""
        host = orphan.host
        machine = Ref(MACHINE, Key("", host.name or host.id), host.machine_uid)
        scope = next((scope for scope in self._scopes.values() if scope.name == orphan.scope), None)
        identity = HostIdentity(host.machine_uid, "", host.name)
        return scope is not None and scope.remove_orphan(DeleteHost(machine, identity, host, {}, orphan.why))

    def withdraw(self, uid: str, *, but_deletion: bool = False) -> None:
        """Take back a call for ``uid`` that waits for its turn. ``but_deletion``: a deletion keeps its place.

        In any scope: an edited config may have moved its home since.
        """
        for scope in self._scopes.values():
            scope.withdraw(uid, but_deletion=but_deletion)

    def waits_to_delete(self, uid: str) -> bool:
        """A deletion for ``uid`` waits for its turn; ``submit`` of another one keeps its place."""
        return any(scope.waits_to_delete(uid) for scope in self._scopes.values())

    def forget(self, uid: str) -> None:
        """The Machine is gone for good."""
        self._home.pop(uid, None)
        for scope in self._scopes.values():
            scope.forget(uid)
        for poller in self._pollers.values():
            poller.forget(uid)

    @property
    def busy(self) -> bool:
        """Some provider call runs or waits."""
        return any(scope.calls for scope in self._scopes.values())

    async def close(self, grace: float = 10.0) -> None:
        """Stop listing, wait up to ``grace`` seconds for calls that run."""
        await self._shapes.close()
        await self._live_checks.close()
        await self._consoles.close()
        await self._quotas.close()
        await asyncio.gather(*(poller.close() for poller in self._pollers.values()))
        await asyncio.gather(*(scope.close(grace) for scope in self._scopes.values()), *self._going)

    def _known_scope(self, need: HostNeed) -> bool:
        """Whether the scope in which the host was made is one that is listed; then the search begins there."""
        for key in self._scopes:
            if str(key) == need.made_in and key.may_have_hosts_of(need.namespace):
                self._home.setdefault(need.machine_uid, key)
                return True
        return False

    @staticmethod
    def _doubted(read: HostRead, need: HostNeed, known: bool) -> HostRead:
        """Nobody can say that a host is absent whose scope is not listed: its config may have been edited since."""
        if not isinstance(read, HostAbsent) or not need.made_in or known:
            return read
        where = "a provider's account" if need.made_in == UNRECORDED else need.made_in
        return HostUnknown(f"its host was made in {where}, and no config of that is known now")

    def _read(self, key: ScopeKey, need: HostNeed) -> HostRead | None:
        scope, poller = self._scopes[key], self._pollers[key]
        fresh_within = poller.fresh_enough(need.machine_uid, need.fresh_within)
        found = scope.listing.read(need.machine_uid, fresh_within, asyncio.get_running_loop().time())
        if found is not None:
            poller.served(need.machine_uid)
            return found
        why = poller.want(need.machine_uid)
        return HostUnknown(why) if why else None

    def _look_where_it_may_be(self, need: HostNeed, asked: ScopeKey | None) -> HostRead | None:
        """First where it was last, then where its config puts it now: an edited config must not hide the old host."""
        uid = need.machine_uid
        for key in dict.fromkeys(key for key in (self._home.get(uid), asked) if key is not None):
            read = self._read(key, need)
            if not isinstance(read, HostAbsent) or read.leftover is not None:
                self._home.setdefault(uid, key)
                if isinstance(read, HostPresent):
                    self._home[uid] = key
                return read
        for key, scope in self._scopes.items():
            host = scope.listing.host(uid) if key.may_have_hosts_of(need.namespace) else None
            if host is not None and host.state is not HostState.UNFINISHED:
                self._home[uid] = key
                return HostPresent(host)
        if asked is not None:
            self._home[uid] = asked
        return HostAbsent()

    def _look_everywhere(self, need: HostNeed) -> HostRead | None:
        """The config can't be read, so any scope may have the host.

        Absent only if every scope that is known says so; the default scopes of all providers count as known, so that
        a Machine whose config was never good can be deleted in a world where no other Machine is. Scopes of other
        namespaces can't have it, whatever their clouds say.
        """
        keys = [key for key in self._scopes if key.may_have_hosts_of(need.namespace)] or self._default_scopes()
        if not keys:
            return HostUnknown("its config names no provider, and no provider's hosts can be listed")
        reads = {key: self._read(key, need) for key in keys}
        for key, read in reads.items():
            if isinstance(read, HostPresent):
                self._home[need.machine_uid] = key
                return read
        if any(read is None for read in reads.values()):
            return None
        unknown = next((read for read in reads.values() if isinstance(read, HostUnknown)), None)
        for key, read in reads.items():
            if unknown is None and isinstance(read, HostAbsent) and read.leftover is not None:
                self._home[need.machine_uid] = key
                return read
        return unknown or HostAbsent()

    def _default_scopes(self) -> list[ScopeKey]:
        keys = []
        for registration in self._registry.registrations():
            for kind in registration.config_kinds[:1]:
                config = {"apiVersion": kind.api_version, "kind": kind.kind}
                key = self._configs.check(config, "").scope
                if key is not None:
                    self._scope(key, config, "")
                    keys.append(key)
        return keys

    def _scope(self, key: ScopeKey, config: Mapping[str, Any] | None, namespace: str) -> Scope:
        self._last_asked.note(key)
        scope = self._scopes.get(key)
        if scope is None:
            config = config or {}
            found = self._registry.find(str(config.get("apiVersion")), str(config.get("kind")))
            scope = self._unlisted.pop(key, None)
            scope = scope or Scope(str(key), self._opener(key, config, namespace), self._deps)
            self._scopes[key] = scope
            pause = found.registration.list_pause if found else 0.0
            self._pollers[key] = Poller(scope, self._deps, pause, partial(self._is_over, key, scope))
        return scope

    def _unlisted_scope(self, key: ScopeKey, config: Mapping[str, Any], namespace: str) -> Scope:
        self._last_asked.note(key)
        scope = self._scopes.get(key) or self._unlisted.get(key)
        if scope is None:
            for known, other in list(self._unlisted.items()):
                self._is_over(known, other)
            scope = self._unlisted[key] = Scope(str(key), self._opener(key, config, namespace), self._deps)
        return scope

    def _is_over(self, key: ScopeKey, scope: Scope) -> bool:
        """Whether nobody needs the scope any more; then it goes."""
        if not self._last_asked.is_unused(key, scope, self._home.values()):
            return False
        for known in (self._scopes, self._unlisted, self._pollers):
            known.pop(key, None)
        self._last_asked.forget(key, scope)
        going = asyncio.create_task(scope.let_go(), name=f"let go of {scope.name}", context=Context())
        self._going.add(going)
        going.add_done_callback(self._going.discard)
        return True

    def _live_check(self, need: HostNeed, checked: Checked) -> LiveCheck:
        if not need.live or need.config is None or checked.scope is None or checked.problems:
            return NOBODY_ASKED
        scope = self._unlisted_scope(checked.scope, need.config, need.namespace)
        answer = self._live_checks.look_for(need.machine_uid, need.config, scope)
        if not isinstance(answer, ConfigChecked):
            return answer
        return ConfigChecked(tuple(_below(need.config_path, problem) for problem in answer.problems))

    def _opener(self, key: ScopeKey, config: Mapping[str, Any], namespace: str) -> Callable[[], Provider]:
        def open_provider() -> Provider:
            found = self._registry.find(str(config["apiVersion"]), str(config["kind"]))
            if found is None:
                raise LookupError(f"provider {key.provider} is gone")
            with_objects = found.registration.open_with_objects
            if with_objects is not None and self._secrets_in is not None and self._objects_in is not None:
                return with_objects(key.scope, config, self._secrets_in(namespace), self._objects_in(namespace))
            with_secrets = found.registration.open_with_secrets
            if with_secrets is not None and self._secrets_in is not None:
                return with_secrets(key.scope, config, self._secrets_in(namespace))
            return found.registration.open(key.scope, config)

        return open_provider

    def _changed(self, uid: str) -> None:
        for listener in self._listeners:
            listener(uid)


def _below(config_path: str, problem: Problem | ConfigProblem) -> ConfigProblem:
    return ConfigProblem(f"{config_path}.{problem.path}" if problem.path else config_path, problem.message)

"""Hosts as the Machines' own status shows them: a dry run asks no provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from controllers.kernel.actions import CreateHost, DeleteHost, HostAction, RebootHost, UpdateHost
from controllers.kernel.bootstrapping import NO_SUPPORT, Support
from controllers.kernel.conditions import find
from controllers.kernel.reconciler import Reconciler
from controllers.kernel.refs import Obj, generation_of, key_of, uid_of
from controllers.kernel.view import HostAbsent, HostNeed, HostPresent, HostRead, HostReads, HostUnknown, View
from providers.base.contract import Address, Host, HostState
from providers.base.registry import Registry

ASSUMPTION = "Hosts are taken to be as each Machine's status shows them; no provider was asked."
_OUTDATED = "outdated"


class AssumedHosts:
    """A Machine with a providerID has its host; one that says it is up to date has it as its spec asks."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._hosts: dict[str, Host] = {}
        self._in_flight: dict[str, str] = {}

    def assume(self, reconciler: Reconciler[Any], machines: Iterable[Obj], view: View) -> None:
        """Take down the hosts of the Machines of a live cluster; ``reconciler`` says what each of them asks for."""
        for machine in machines:
            provider_id = (machine.get("spec") or {}).get("providerID")
            need = reconciler.needs(key_of(machine), view) if provider_id else None
            if need is not None:
                self._hosts[uid_of(machine)] = _host(machine, str(provider_id), need.spec_hash)

    def read(self, need: HostNeed) -> HostReads:
        """What the shell would have read for ``need``."""
        uid = need.machine_uid
        doing = self._in_flight.get(uid, "")
        host = self._hosts.get(uid)
        read: HostRead = HostPresent(host) if host else HostAbsent()
        if doing == "create":
            read = HostUnknown("the host is being made")
        support = Support(*self._registry.bootstrapping(need.config)) if need.config else NO_SUPPORT
        problems = need.problems or self._problems(need)
        return HostReads(host=read, problems=problems, in_flight=doing, support=support)

    def perform(self, action: HostAction) -> None:
        """Remember that the provider would be at work on it."""
        names = {CreateHost: "create", UpdateHost: "update", DeleteHost: "delete", RebootHost: "reboot"}
        self._in_flight[action.machine.uid] = names[type(action)]

    def _problems(self, need: HostNeed) -> tuple[Any, ...]:
        from controllers.kernel.view import ConfigProblem  # noqa: PLC0415

        if need.config is None:
            return ()
        prefix = need.config_path
        return tuple(
            ConfigProblem(".".join(p for p in (prefix, problem.path) if p), problem.message)
            for problem in self._registry.problems(need.config)
        )


def _host(machine: Obj, provider_id: str, wanted: str) -> Host:
    status = machine.get("status") or {}
    up_to_date = find(status.get("conditions"), "UpToDate") or {}
    known = status.get("observedGeneration") == generation_of(machine)
    replaced = (status.get("replacement") or {}).get("providerID")
    is_so = known and up_to_date.get("status") != "False" and replaced != provider_id
    return Host(
        id=provider_id.rsplit("/", 1)[-1],
        machine_uid=uid_of(machine),
        name=str((status.get("nodeRef") or {}).get("name") or machine["metadata"]["name"]),
        provider_id=provider_id,
        state=HostState.RUNNING,
        spec_hash=wanted if is_so else _OUTDATED,
        addresses=tuple(_addresses(status)),
        failure_domain=str(status.get("failureDomain") or ""),
        kubelet_version=str((status.get("versions") or {}).get("kubelet") or ""),
    )


def _addresses(status: Mapping[str, Any]) -> Iterable[Address]:
    for address in status.get("addresses") or ():
        yield Address(str(address.get("type", "")), str(address.get("address", "")))

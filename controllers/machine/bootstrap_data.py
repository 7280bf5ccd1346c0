"""The data with which the Machine's host joins: made right before the host, kept alive until it has joined, then gone.

    wanted, nothing wrong -> Secret and token -> host -> token renewed -> Node joins -> both go

What is refused is refused before anything is made. ``controllers.bootstrap`` says what the data is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from api import names
from api.conditions import MachineCondition, Reason
from controllers.bootstrap.calls import Refused
from controllers.bootstrap.credentials import secret_key, token_ids
from controllers.bootstrap.ordering import Wanted, order_for, upgrade_for
from controllers.bootstrap.settings import JOIN_TIMEOUT, effective, is_asked_for
from controllers.kernel.actions import Action, EnsureBootstrap, RemoveBootstrap
from controllers.kernel.bootstrapping import (
    NOBODY_LOOKED,
    RENEW_AFTER,
    TOKEN_LIFE,
    BootstrapData,
    BootstrapNeed,
    BootstrapOrder,
    BootstrapReads,
    DataAbsent,
    DataPresent,
    DataRefused,
    DataUnknown,
    JoinTarget,
    NoTarget,
)
from controllers.kernel.conditions import Condition, find, parse_time
from controllers.kernel.etcd import NOBODY_READS, EtcdView
from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.ownership import cluster_of
from controllers.kernel.refs import (
    MACHINE,
    Key,
    Obj,
    annotations_of,
    objects,
    ref_of,
    runs_control_plane,
    spec_of,
    status_of,
)
from controllers.kernel.view import HostReads, Unreachable, View
from controllers.machine import control_plane_data, preparation
from controllers.machine.control_plane_data import Scene
from controllers.machine.decision import condition
from providers.base.contract import BootstrapRef, Host, HostRequest, KubeletUpgrade

RENEWED_FOR = timedelta(hours=24)
"""For so long after its host was made a token is renewed: nobody waits for such a host any more."""
ENDS_WITHIN = timedelta(hours=1)
"""So long after its Node joined the host of a control plane that says nothing counts as done: kubeadm has 20 minutes
for a try."""
REFUSED_LOOK = 15.0
"""Seconds until it is looked again whether what was refused can be made."""
_NOT_OURS_TO_MEND = frozenset({Reason.WORKLOAD_UNREACHABLE, Reason.TOKEN_REFUSED})
LONGEST_WARNING = 1024
"""Characters of the hazards in the condition BootstrapDataReady."""
MOST_REMOVALS = 5
"""Tries to remove the data of a Machine that is to go; the token ends by itself, and a sweep looks for it."""


@dataclass(frozen=True, slots=True)
class Bootstrapping:
    """``asked``: this Machine's host gets bootstrap data. ``refused``: why it can't be made. ``order``: what to make;
    None as well while it is being found out where the host is to join.

    ``join_timeout``: how long its host may take to join.
    ``wanted``: what it was ordered for; None while that is not known.
    ``founds``: the Cluster that its host may be the one to make: it runs a control plane and never had a Node.
    ``marked``: it was made once, so it may be there though nobody asks for it any more.
    ``preparation``: with what a host begins that can't join yet; "": none is to be taken for that now.
    """

    need: BootstrapNeed
    reads: BootstrapReads = NOBODY_LOOKED
    asked: bool = False
    order: BootstrapOrder | None = None
    refused: Refused | None = None
    marked: bool = False
    join_timeout: timedelta = JOIN_TIMEOUT
    wanted: Wanted | None = None
    founds: Key | None = None
    preparation: str = ""

    @property
    def may_exist(self) -> bool:
        """Whether there may be something to remove."""
        return (self.asked or self.marked) and (self.reads.in_flight or not isinstance(self.reads.data, DataAbsent))

    @property
    def ref(self) -> BootstrapRef | None:
        """What a provider gets of it."""
        return BootstrapRef(self.order.secret.name, self.order.format) if self.order is not None else None


def need_of(machine: Obj, view: View) -> BootstrapNeed | None:
    """None: no bootstrap data was ever asked for."""
    cluster = cluster_of(machine, view)
    specs = (spec_of(cluster) if cluster is not None else {}, spec_of(machine))
    if not is_asked_for(*specs) and not _is_marked(machine):
        return None
    endpoint = effective(*specs).endpoint or _endpoint_of(cluster)
    token_id = annotations_of(machine).get(names.BOOTSTRAP_TOKEN_ANNOTATION)
    token = token_id if isinstance(token_id, str) else ""
    return BootstrapNeed(ref_of(MACHINE, machine), cluster_key_of(MACHINE, machine), endpoint, token)


def observe(
    machine: Obj, request: HostRequest | None, reads: HostReads, view: View, etcd: EtcdView = NOBODY_READS
) -> Bootstrapping | None:
    """What is known and wanted; None where no bootstrap data was ever asked for."""
    need = need_of(machine, view)
    if need is None:
        return None
    if not runs_control_plane(machine):
        target = control_plane_data.for_worker(machine, reads.bootstrap.target, view)
        reads = replace(reads, bootstrap=replace(reads.bootstrap, target=target))
    cluster = cluster_of(machine, view)
    specs = (spec_of(cluster) if cluster is not None else {}, spec_of(machine))
    marked = _is_marked(machine)
    if not is_asked_for(*specs) or request is None or reads.support.own:
        return Bootstrapping(need, reads.bootstrap, marked=marked)
    settings = effective(*specs)
    asked = Bootstrapping(
        need,
        reads.bootstrap,
        asked=True,
        marked=marked,
        join_timeout=settings.join_timeout,
        founds=control_plane_data.may_found(machine, need),
    )
    if request.versions.control_plane:
        scene = Scene(machine, cluster, request, settings, reads, view, etcd)
        wanted = control_plane_data.wanted(scene, need)
        if wanted is None or reads.problems:
            return asked
        if isinstance(wanted, Refused):
            return _refusing(asked, wanted)
        return _ordered(asked, *wanted)
    ordered = Wanted(need.machine, request, settings, reads.support, view.now, need.cluster)
    if isinstance(view.workload, Unreachable):
        asked = replace(asked, preparation=preparation.script_for(machine, ordered, reads.host, view))
        text = f"no token can be made where its Node is to be: {view.workload.why}"
        return _refusing(asked, Refused(str(Reason.WORKLOAD_UNREACHABLE), text))
    target = reads.bootstrap.target
    if target is None or reads.problems:
        return asked
    return _ordered(asked, ordered, target)


def _ordered(asked: Bootstrapping, wanted: Wanted, target: JoinTarget | NoTarget) -> Bootstrapping:
    found = order_for(wanted, target)
    asked = replace(asked, wanted=wanted)
    return _refusing(asked, found) if isinstance(found, Refused) else replace(asked, order=found)


def before_replacement(found: Bootstrapping | None) -> NotYet | None:
    """Why no host may go for another one: that could not join. None if it could, or joins by other means."""
    if found is None or not found.asked:
        return None
    if found.refused is not None:
        return NotYet(found.refused.message, REFUSED_LOOK, refused=found.refused)
    return NotYet("it is being found out where its host is to join", 1.0) if found.order is None else None


def with_upgrade(request: HostRequest, found: Bootstrapping | None) -> HostRequest:
    """The request with the steps that change the kubelet of a host that has joined, or why there are none."""
    if found is not None and found.refused is not None and found.wanted is None:
        return replace(request, upgrade=KubeletUpgrade(why_not=found.refused.message))
    if found is None or found.wanted is None or found.reads.target is None:
        return request
    return replace(request, upgrade=upgrade_for(found.wanted, found.reads.target))


def is_being_found_out(found: Bootstrapping | None) -> bool:
    """Whether soon it is known with which steps a host that has joined could be changed, and now it is not."""
    return found is not None and found.asked and found.refused is None and found.wanted is None


@dataclass(frozen=True, slots=True)
class NotYet:
    """The host has to wait for its data. ``refused``: for as long as somebody else has to do something."""

    why: str
    after: float
    actions: tuple[Action, ...] = ()
    refused: Refused | None = None


def before_host(found: Bootstrapping | None, now: datetime) -> BootstrapRef | NotYet | None:
    """What the new host is given; None: nothing, it joins by other means."""
    if found is None or not found.asked:
        return None
    not_yet = before_replacement(found)
    if not_yet is not None:
        return not_yet
    assert found.order is not None
    if found.reads.in_flight:
        return NotYet("its bootstrap data is being made", 2.0)
    data = found.reads.data
    if not _is_due(data, now) and isinstance(data, DataPresent) and data.digest == found.order.digest:
        return found.ref
    refused = Refused(data.reason, data.message) if isinstance(data, DataRefused) else None
    if isinstance(data, DataRefused) and now < data.retry_at:
        return NotYet(data.message, max(0.1, (data.retry_at - now).total_seconds()), refused=refused)
    return NotYet("its bootstrap data is being made", 2.0, (_ensure(found.order, "make"),), refused)


def renewal(found: Bootstrapping | None, host: Host, now: datetime) -> tuple[Action, ...]:
    """While the host comes up its token must neither end nor be lost."""
    if found is None or found.order is None or found.reads.in_flight or not _is_due(found.reads.data, now):
        return ()
    if host.created_at is not None and now >= host.created_at + RENEWED_FOR:
        return ()
    return (_ensure(found.order, "keep"),)


def removal(found: Bootstrapping | None, now: datetime, why: str, *, joined: bool = False) -> tuple[Action, ...]:
    """What may be there goes, unless that is under way or has just failed. ``joined``: its Node is there."""
    if found is None or not found.may_exist or found.reads.in_flight:
        return ()
    data = found.reads.data
    if isinstance(data, DataRefused) and now < data.retry_at:
        return ()
    machine = found.need.machine
    ids = token_ids(machine.uid)
    if isinstance(data, DataPresent):
        ids = (data.token_id, *(each for each in ids if each != data.token_id))
    if isinstance(data, DataPresent) and not data.token_id:
        ids = ()  # it was made for a host that makes its cluster
    founds = found.founds if not joined else None
    why = f"remove bootstrap data: {why}"
    return (RemoveBootstrap(machine, secret_key(machine.key), ids, found.need.cluster, why, founds),)


def seconds_to_end(found: Bootstrapping | None, machine: Obj, now: datetime) -> float:
    """Until kubeadm counts as done on a host that has joined; 0 once it does.

    On a control plane the kubelet, and so the Node, is there before etcd and the API server are: if kubeadm fails after
    it, the host joins a second time, with the same token.
    """
    if found is None or not isinstance(found.reads.data, DataPresent | DataRefused) or not runs_control_plane(machine):
        return 0.0
    if found.reads.report is not None and found.reads.report.done:
        return 0.0
    joined = find(status_of(machine).get("conditions"), MachineCondition.NODE_JOINED) or {}
    since = parse_time(joined.get("lastTransitionTime")) if joined.get("status") == "True" else None
    return max(0.0, (ENDS_WITHIN - (now - since if since is not None else timedelta())).total_seconds())


def until_end(found: Bootstrapping | None, host: Host, now: datetime) -> tuple[Action, ...]:
    """The token of such a host is renewed. One that is not seen is not made again: it may have gone for good. The host
    that made its cluster has none."""
    if found is None:
        return ()
    data = found.reads.data
    had_one = data.token_id if isinstance(data, DataPresent) else isinstance(data, DataRefused) and found.need.token_id
    return renewal(found, host, now) if had_one else ()


def after_join(found: Bootstrapping | None, now: datetime) -> tuple[Action, ...]:
    """The same once the Node has joined: of what nobody has seen since the start a sweep will tell."""
    seen = found is not None and isinstance(found.reads.data, DataPresent | DataRefused)
    return removal(found, now, "its Node has joined", joined=True) if seen else ()


def holds_deletion(found: Bootstrapping | None) -> bool:
    """Whether the Machine stays until its token is gone. Where nobody can remove that, it ends by itself."""
    if found is None or not found.may_exist:
        return False
    data = found.reads.data
    given_up = isinstance(data, DataRefused) and (data.reason in _NOT_OURS_TO_MEND or data.failures >= MOST_REMOVALS)
    return not given_up


def condition_of_data(found: Bootstrapping | None, joined: bool, before: Any) -> Condition | None:
    """BootstrapDataReady; None where there is nothing to say."""
    if found is None or not found.asked:
        return None
    type_, data = MachineCondition.BOOTSTRAP_DATA_READY, found.reads.data
    known = find(before, type_)
    if joined:
        return _created(found, known, keeps=True)
    if found.refused is not None:
        return condition(type_, False, found.refused.reason, found.refused.message)
    if isinstance(data, DataRefused):
        return condition(type_, False, data.reason, data.message)
    if isinstance(data, DataPresent):
        return _created(found, known, keeps=found.order is None)
    if known is not None and isinstance(data, DataUnknown):
        return Condition.as_it_stands(known)
    return condition(type_, False, Reason.WAITING_FOR_BOOTSTRAP_DATA, "its bootstrap data is being made")


def _created(found: Bootstrapping, known: Mapping[str, Any] | None, *, keeps: bool) -> Condition:
    """True, with what a later version breaks. ``keeps``: what it said before stays, so that a Machine that has joined
    costs no write when the table of hazards or the version of its cluster changes.
    """
    if keeps and known is not None and known.get("status") == "True":
        return Condition.as_it_stands(known)
    text = "; ".join(found.order.warnings) if found.order is not None else ""
    text = text if len(text) <= LONGEST_WARNING else f"{text[: LONGEST_WARNING - 1]}…"
    return condition(MachineCondition.BOOTSTRAP_DATA_READY, True, Reason.BOOTSTRAP_DATA_CREATED, text)


def mark(found: Bootstrapping | None, annotations: Mapping[str, str]) -> dict[str, str]:
    """What the Machine is annotated with when its host is made: the id of its token."""
    if found is None or found.order is None:
        return {}
    data = found.reads.data
    token_id = data.token_id if isinstance(data, DataPresent) else found.order.ids[0]
    known = annotations.get(names.BOOTSTRAP_TOKEN_ANNOTATION) == token_id
    return {} if known else {names.BOOTSTRAP_TOKEN_ANNOTATION: token_id}


def _ensure(order: BootstrapOrder, verb: str) -> EnsureBootstrap:
    return EnsureBootstrap(order, f"{verb} the bootstrap data of {order.machine}")


def _is_due(data: BootstrapData, now: datetime) -> bool:
    """Whether the Secrets are to be looked at. A token with more than 20 of its 30 minutes left is not."""
    match data:
        case DataUnknown() | DataAbsent():
            return True
        case DataRefused(retry_at=retry_at):
            return now >= retry_at
        case DataPresent(token_id=""):
            return False
        case DataPresent(expires=expires, whole=whole):
            return not whole or expires is None or expires - now <= TOKEN_LIFE - RENEW_AFTER


def _refusing(found: Bootstrapping, refused: Refused) -> Bootstrapping:
    return replace(found, refused=refused)


def _is_marked(machine: Obj) -> bool:
    return names.BOOTSTRAP_TOKEN_ANNOTATION in annotations_of(machine)


def _endpoint_of(cluster: Obj | None) -> str:
    """The first of ``status.apiEndpoints`` (KEP-3), "" if there is none."""
    for endpoint in objects(status_of(cluster).get("apiEndpoints")) if cluster is not None else ():
        host, port = endpoint.get("host"), endpoint.get("port")
        if isinstance(host, str) and host and isinstance(port, int):
            return f"https://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port or 443}"
    return ""

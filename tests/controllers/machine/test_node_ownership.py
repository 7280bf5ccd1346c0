"""Nothing is written to a Node, and nothing on it drained or deleted, unless the provider's host of this Machine's UID
says that the Node is its own. What a person writes into a Machine proves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.kernel.actions import Action, Delete, DeleteHost, Evict, Patch
from controllers.kernel.node_policy import claimed_by_another, is_recorded_for
from controllers.kernel.plan import Plan
from controllers.kernel.refs import MACHINE, NODE, POD, Key, Obj
from controllers.kernel.view import HostAbsent, HostPresent, HostRead, HostReads, HostUnknown
from controllers.machine.host_spec import desired_host
from controllers.machine.reconciler import RECONCILER
from providers.base.contract import Address, Host, HostState, NeedsDrain, NeedsReplacement
from tests.builders import NOW, Builder, FakeView, machine, node
from tests.builders.machines import MachineBuilder
from tests.controllers.machine.pods import pod
from tests.examples import usually

ID, FOREIGN = "sim://own", "sim://foreign"
KEY = Key("default", "m-1")


def mine(provider_id: str = ID) -> MachineBuilder:
    return machine("m-1").created(600).provider_id(provider_id)


def host(**changed: Any) -> Host:
    spec_hash = desired_host(mine().build(), FakeView()).spec_hash
    shown = Host("h-1", "uid-m-1", "m-1", ID, HostState.RUNNING, spec_hash, (Address("InternalIP", "10.0.0.1"),))
    return replace(shown, **changed)


def foreign() -> Builder:
    """A Node of nobody's, as an administrator joined it by hand."""
    return node("victim").created(3600).provider_id(FOREIGN).ready().address("10.0.0.9")


def going(body: Builder) -> Builder:
    return body.deleting(5, names.MACHINE_FINALIZER)


def planned(read: HostRead, *objects: Builder, **reads: Any) -> Plan:
    observed = RECONCILER.observe(KEY, FakeView(*objects), HostReads(read, **reads))
    assert observed is not None
    return RECONCILER.plan(observed)


def touched(plan: Plan) -> list[str]:
    """Nodes that the plan writes to, deletes or takes pods from, by name."""
    return [name for action in plan.actions() if (name := node_of(action))]


def node_of(action: Action) -> str:
    if isinstance(action, Patch | Delete) and action.target.kind is NODE:
        return action.target.key.name
    if isinstance(action, Evict) or (isinstance(action, Delete) and action.target.kind is POD):
        return "of a pod"
    return ""


def hostile(provider_id: str = FOREIGN) -> MachineBuilder:
    """Its spec and its status name the foreign Node, and it asks for all that could hurt it."""
    body = mine(provider_id)
    body.spec["metadata"] = {"labels": {"node-role.kubernetes.io/worker": "", "x": "y"}}
    body.spec["taints"] = [{"key": "k", "effect": "NoExecute"}]
    body.spec["nodeDrainForceAfter"] = "1s"
    body.status["nodeRef"] = {"apiVersion": "v1", "kind": "Node", "name": "victim", "uid": "uid-victim"}
    body.status["replacement"] = {
        "providerID": FOREIGN,
        "earlierProviderIDs": [FOREIGN],
        "startedAt": "2020-01-01T00:00:00Z",
    }
    body.status["appliedNodeMetadata"] = {"labels": ["kubernetes.io/hostname", "x"], "taints": ["node:NoSchedule"]}
    return body


READS: dict[str, HostRead] = {
    "no host": HostAbsent(),
    "a provider that is silent": HostUnknown("down"),
    "a host of its own elsewhere": HostPresent(host()),
    "a host of its own that boots": HostPresent(host(provider_id="", state=HostState.PENDING)),
    "a host of its own that goes": HostPresent(host(state=HostState.DELETING)),
    "a host of its own that has the Node's name": HostPresent(host(name="victim")),
    "remains": HostAbsent(host(state=HostState.UNFINISHED)),
}


@pytest.mark.parametrize("deleting", [False, True], ids=["living", "deleting"])
@pytest.mark.parametrize("abandoned", [False, True], ids=["", "abandoned"])
@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_foreign_node_is_left_alone_whatever_a_person_wrote(read: HostRead, deleting: bool, abandoned: bool) -> None:
    body = hostile()
    if abandoned:
        body.annotated(names.ABANDON_HOST_ANNOTATION, "").annotated(names.ABANDON_NODE_ANNOTATION, "")
    everything = (going(body) if deleting else body, foreign(), pod("web").on("victim").ready())
    for bare in (False, True):
        if bare:
            body.status.clear()
        assert touched(planned(read, *everything)) == []


def test_a_reference_to_a_foreign_node_is_taken_out_of_the_status() -> None:
    body = hostile()
    del body.status["replacement"]
    for read in (HostAbsent(), HostPresent(host(provider_id=FOREIGN, machine_uid="uid-m-1"))):
        (status, *_) = [a for a in planned(read, body, foreign()).actions() if isinstance(a, Patch)]
        assert status.patch["status"]["nodeRef"] is None


def test_a_node_that_is_older_than_the_machine_is_a_conflict_even_if_a_provider_says_it_is_its_own() -> None:
    """A tenant may bring a cloud of his own, which says what he wants; but no host is older than its Machine."""
    plan = planned(HostPresent(host(provider_id=FOREIGN)), mine(FOREIGN), foreign())
    assert touched(plan) == []
    assert "older than the Machine" in str(plan.outcome)


CONFLICTS: dict[str, list[Builder]] = {
    "a Node of another Machine": [node("m-1").of(machine("m-2")).provider_id(ID).created(60).ready()],
    "two Nodes with the providerID": [
        node("m-1").of(mine()).created(60).ready(),
        node("m-1b").provider_id(ID).created(60).ready(),
    ],
    "a Node that is older": [node("m-1").provider_id(ID).created(3600).ready()],
}


@pytest.mark.parametrize("nodes", CONFLICTS.values(), ids=CONFLICTS.keys())
@pytest.mark.parametrize("answer", [NeedsReplacement("so"), NeedsDrain("so")], ids=["replace", "drain"])
def test_a_conflict_stops_all_that_would_change_the_host(nodes: list[Builder], answer: Any) -> None:
    changed = HostPresent(host(spec_hash="another"))
    plan = planned(changed, mine(), *nodes, pod("web").on("m-1").ready(), answer=answer)
    assert [type(a) for a in plan.actions() if not isinstance(a, Patch)] in ([], [type(e) for e in _events(plan)])
    assert touched(plan) == []


def _events(plan: Plan) -> list[Action]:
    return [action for action in plan.actions() if type(action).__name__ == "Event"]


@pytest.mark.parametrize("nodes", CONFLICTS.values(), ids=CONFLICTS.keys())
def test_in_a_conflict_a_deleted_machine_lets_go_of_the_node_and_goes(nodes: list[Builder]) -> None:
    body = going(mine())
    drain_context = (*nodes, pod("web").on("m-1").ready())
    plan = planned(HostPresent(host()), body, *drain_context)
    assert touched(plan) == []
    assert any(isinstance(action, DeleteHost) for action in plan.actions())
    gone = planned(HostAbsent(), body, *drain_context)
    assert touched(gone) == []
    assert [a.patch for a in gone.actions() if isinstance(a, Patch)] == [{"metadata": {"finalizers": None}}]


def test_a_kubelet_that_gives_its_node_anothers_record_takes_nothing_from_the_one_that_was_linked() -> None:
    """NodeRestriction lets a kubelet write annotations of its own Node. While the provider is silent they are read."""
    body, own = mine(), node("m-1").of(mine()).created(60).ready()
    body.status["nodeRef"] = {"apiVersion": "v1", "kind": "Node", "name": "m-1", "uid": "uid-m-1"}
    own.body["metadata"]["uid"] = "uid-m-1"
    rival, web = node("evil").of(mine()).provider_id("").created(30).ready(), pod("web").on("m-1").ready()
    for read in (HostUnknown("down"), HostPresent(host()), HostPresent(host(spec_hash="another"))):
        assert planned(read, body, own, web, rival) == planned(read, body, own, web)
    assert planned(HostUnknown("down"), body, own, web, rival) != planned(HostUnknown("down"), body, web, rival)


def test_a_machine_that_was_bound_elsewhere_by_hand_is_emptied_by_its_own_node_and_no_other() -> None:
    own = node("m-1").of(mine()).created(60).ready()
    drain_context = (own, foreign(), pod("own").on("m-1").ready(), pod("web").on("victim").ready())
    plan = planned(HostPresent(host()), going(mine(FOREIGN)), *drain_context)
    assert set(touched(plan)) <= {"m-1", "of a pod"}
    assert touched(planned(HostPresent(host()), mine(FOREIGN), *drain_context)) == []


def test_a_node_that_is_recorded_for_the_machine_goes_with_it_though_its_host_is_gone_already() -> None:
    own = node("m-1").of(mine()).created(60)
    for body in (mine(), mine(FOREIGN), machine("m-1").created(600)):
        assert touched(planned(HostAbsent(), going(body), own, foreign())) == ["m-1"]


def test_while_the_provider_is_silent_a_node_is_read_and_not_written() -> None:
    body = mine()
    body.spec["metadata"] = {"labels": {"x": "y"}}
    own = node("m-1").of(mine()).created(60).ready()
    plan = planned(HostUnknown("down"), body, own)
    assert touched(plan) == []
    (status,) = [a for a in plan.actions() if isinstance(a, Patch)]
    assert status.patch["status"]["nodeRef"]["name"] == "m-1"


def test_a_second_machine_with_the_same_provider_id_changes_nothing_for_the_first() -> None:
    own = node("m-1").of(mine()).created(60).ready()
    rival = machine("rival", "hostile").created(300).provider_id(ID)
    plan = planned(HostPresent(host()), mine(), own, rival)
    assert plan == planned(HostPresent(host()), mine(), own)


@pytest.mark.parametrize(
    ("there", "linked"),
    [
        (node("m-1").created(60).address("10.0.0.1"), True),
        (node("m-1").created(60).address("10.0.0.2"), False),
        (node("m-1").created(60), False),
        (node("m-1").created(3600).address("10.0.0.1"), False),
        (node("m-1").created(3600).labelled({names.NODE_OWNED_BY_LABEL: "uid-m-1"}), True),
        (node("m-1").created(60).address("10.0.0.1").labelled({names.NODE_OWNED_BY_LABEL: "uid-x"}), False),
    ],
    ids=["its address", "another address", "no address", "older", "recorded", "another's"],
)
def test_a_node_without_provider_id_needs_more_than_the_hosts_name(there: Builder, linked: bool) -> None:
    assert bool(touched(planned(HostPresent(host()), mine(), there.ready()))) is linked


# -- over random worlds

_IDS = st.sampled_from([ID, FOREIGN, "sim://third", ""])
_UIDS = st.sampled_from(["", "uid-m-1", "uid-m-2"])
_TITLES = st.sampled_from(["", "default/m-1", "hostile/m-1"])
_AGES = st.sampled_from([30.0, 600.0, 3600.0])


@st.composite
def _nodes(draw: st.DrawFn) -> list[Builder]:
    found: list[Builder] = []
    for name in draw(st.lists(st.sampled_from(["m-1", "victim", "third"]), unique=True)):
        body = node(name).created(draw(_AGES)).address(draw(st.sampled_from(["10.0.0.1", "10.0.0.9"])))
        body = body.ready() if draw(st.booleans()) else body.not_ready()
        provider_id, uid, title = draw(_IDS), draw(_UIDS), draw(_TITLES)
        body = body.provider_id(provider_id) if provider_id else body
        body = body.labelled({names.NODE_OWNED_BY_LABEL: uid}) if uid else body
        body = body.annotated(names.NODE_MACHINE_ANNOTATION, title) if title else body
        found += (body.draining_for("uid-m-1") if draw(st.booleans()) else body, pod(f"web-{name}").on(name).ready())
    return found


@st.composite
def _machines(draw: st.DrawFn) -> Builder:
    body = hostile(draw(_IDS.filter(bool))) if draw(st.booleans()) else mine(draw(_IDS.filter(bool)))
    if draw(st.booleans()):
        body.spec.pop("providerID")
    body.status["nodeRef"] = {"name": (name := draw(st.sampled_from(["m-1", "victim"]))), "uid": f"uid-{name}"}
    if draw(st.booleans()):
        body.status["replacement"] = {"providerID": draw(_IDS), "earlierProviderIDs": [draw(_IDS)], "startedAt": "x"}
    for mark in (names.ABANDON_HOST_ANNOTATION, names.ABANDON_NODE_ANNOTATION, names.PAUSED_ANNOTATION):
        body = body.annotated(mark, "") if draw(st.integers(0, 4)) == 0 else body
    return going(body) if draw(st.booleans()) else body


_HOSTS = st.builds(
    host,
    provider_id=_IDS,
    name=st.sampled_from(["m-1", "victim"]),
    state=st.sampled_from(HostState),
    spec_hash=st.sampled_from([host().spec_hash, "another"]),
    created_at=st.sampled_from([None, NOW]),
)
_WORLDS: st.SearchStrategy[HostRead] = st.one_of(
    st.just(HostAbsent()), st.just(HostUnknown("down")), st.builds(HostPresent, _HOSTS), st.builds(HostAbsent, _HOSTS)
)
_ANSWERS = st.sampled_from([None, NeedsReplacement("so"), NeedsDrain("so")])


@usually(300)
@given(body=_machines(), nodes=_nodes(), read=_WORLDS, answer=_ANSWERS)
def test_no_plan_touches_a_node_that_nothing_proves_to_be_its_own(
    body: Builder, nodes: list[Builder], read: HostRead, answer: Any
) -> None:
    view = FakeView(body, *nodes)
    observed = RECONCILER.observe(KEY, view, HostReads(read, answer=answer))
    assert observed is not None
    machine_ = view.get(MACHINE, KEY)
    assert machine_ is not None
    for action in RECONCILER.plan(observed).actions():
        name = _touches(action, view)
        if name:
            found = view.get(NODE, Key("", name))
            assert found is not None
            assert _is_proven(found, machine_, read), action


def _touches(action: Action, view: FakeView) -> str:
    if isinstance(action, Patch | Delete) and action.target.kind is NODE:
        return action.target.key.name
    if isinstance(action, Evict) or (isinstance(action, Delete) and action.target.kind is POD):
        found = view.get(POD, action.target.key)
        assert found is not None
        return str(found["spec"]["nodeName"])
    return ""


def _is_proven(found: Obj, machine_: Obj, read: HostRead) -> bool:
    """By the provider's host of this UID, or by the record which a Node bears since that host proved it."""
    if claimed_by_another(found, machine_):
        return False
    if is_recorded_for(found, machine_):
        return True
    own = read.host if isinstance(read, HostPresent) else None
    if own is None:
        return False
    provider_id = found["spec"].get("providerID")
    by_name = not provider_id and found["metadata"]["name"] == own.name
    return bool(own.provider_id) and (provider_id == own.provider_id or by_name)

"""One process for many Clusters: what is decided for one names nothing of another (autoscaler#5510)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from api import names
from controllers.autoscaler.memory import Memory, write
from controllers.autoscaler.options import AutoscalerOptions, ClusterChoice, ShrinkOptions, cluster_kept_in, of_cluster
from controllers.autoscaler.reconciler import AutoscalerReconciler
from controllers.kernel.actions import Action, Create, Event
from controllers.kernel.each_cluster import AllOurs, Clusters, EachCluster, Refused, ViewOfCluster
from controllers.kernel.node_policy import cluster_key_of
from controllers.kernel.plan import Plan, Wait
from controllers.kernel.refs import (
    CLUSTER,
    CONFIG_MAP,
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NODE,
    POD,
    WORKLOAD_KINDS,
    Key,
    Kind,
    key_of,
)
from controllers.kernel.view import Reached, Unreachable, Workload
from nodewright.runtime.settings.cluster_wiring import for_each_cluster
from nodewright.runtime.settings.wiring import claims_of, kinds_in, kinds_of
from tests.builders.view import FakeView
from tests.controllers.autoscaler.fleet import Fleet, Obj
from tests.controllers.autoscaler.town import config_map

OPTIONS = AutoscalerOptions(
    shrink=ShrinkOptions(unneeded_time=timedelta(0), delay_after_add=timedelta(0), delay_after_failure=timedelta(0)),
    clusters=ClusterChoice(home=False),
)
MINE, OTHER = Key("ns", "mine"), Key("ns", "other")
OURS = {MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT}


class Country:
    """Two Clusters in one namespace. Their Nodes have the same names and providerIDs, and labels lie."""

    def __init__(self, luck: Random) -> None:
        self.luck = luck
        self.fleets = {cluster: self._fleet(cluster) for cluster in (MINE, OTHER)}

    def _fleet(self, cluster: Key) -> Fleet:
        fleet, luck = Fleet(replace(OPTIONS, clusters=None)), self.luck
        for number in range(luck.randrange(1, 4)):
            name = f"{cluster.name}-{number}"
            group = fleet.group(name, 0, 10)
            group["spec"]["clusterName"] = fleet.sets[name]["spec"]["clusterName"] = cluster.name
            group["spec"]["replicas"] = luck.randrange(5)
        fleet.settle()
        for number in range(luck.randrange(8)):
            fleet.pod(f"p-{number}", cpu=luck.choice(["1", "3", "64"]))
        for number, (name, machine) in enumerate(sorted(fleet.machines.items())):
            machine["spec"] = {"clusterName": cluster.name, "providerID": f"cloud://{number}"}
            machine["status"]["nodeRef"] = {"name": f"node-{number}"}
            node = fleet.nodes.pop(name)
            node["metadata"]["name"] = node["metadata"]["labels"]["kubernetes.io/hostname"] = f"node-{number}"
            node["spec"]["providerID"] = f"cloud://{number}"
            fleet.nodes[f"node-{number}"] = node
        return fleet

    def lie(self) -> None:
        """Whoever may write one Cluster's objects says in them that they are another's."""
        theirs = self.fleets[OTHER]
        for body in (*theirs.machines.values(), *theirs.sets.values(), *theirs.deployments.values()):
            labels = body["metadata"].setdefault("labels", {})
            if self.luck.random() < 0.5:
                labels[names.CLUSTER_NAME_LABEL] = MINE.name
        owners = [body["metadata"]["uid"] for body in self.fleets[MINE].sets.values()]
        for machine in theirs.machines.values():
            if self.luck.random() < 0.5:
                uid = self.luck.choice(owners)
                owned = {"kind": "MachineSet", "name": uid, "uid": uid, "controller": True}
                machine["metadata"]["ownerReferences"] = [owned]
        for node in theirs.nodes.values():
            node["metadata"]["labels"][names.CLUSTER_NAME_LABEL] = MINE.name

    def bodies(self, kind: Kind) -> list[Obj]:
        found = {MACHINE: "machines", MACHINE_SET: "sets", MACHINE_DEPLOYMENT: "deployments"}[kind]
        return [
            {"apiVersion": kind.api_version, "kind": kind.name, **body}
            for fleet in self.fleets.values()
            for body in getattr(fleet, found).values()
        ]

    def view(self, cluster: Key = MINE, workload: Workload | None = None, *config_maps: Obj) -> FakeView:
        """As the shell shows it to the reconcile of ``cluster``: all at home, and that Cluster's own API."""
        fleet = self.fleets[cluster]
        view = FakeView(now=fleet.now).living_in(workload or Reached(f"{cluster.name}-kubeconfig"))
        view._cluster = cluster
        for kind in OURS:
            view.show(kind, {key_of(body): body for body in self.bodies(kind)})
        for kind, bodies in ((NODE, fleet.nodes), (POD, fleet.pods)):
            shown = [{"apiVersion": "v1", "kind": kind.name, **body} for body in bodies.values()]
            view.show(kind, {key_of(body): body for body in shown})
        for each in self.fleets:
            meta = {"namespace": each.namespace, "name": each.name, "uid": f"c-{each.name}"}
            view.put({"apiVersion": CLUSTER.api_version, "kind": "Cluster", "metadata": meta, "spec": {}})
        view.put(*({"apiVersion": "v1", "kind": "ConfigMap", **body} for body in config_maps))
        return view

    def is_mine(self, kind: Kind, key: Key) -> bool:
        (found,) = [body for body in self.bodies(kind) if key_of(body) == key]
        return cluster_key_of(kind, found) == MINE


def many(options: AutoscalerOptions = OPTIONS) -> EachCluster:
    (found,) = for_each_cluster((AutoscalerReconciler(options),))
    assert isinstance(found, EachCluster)
    return found


def planned(reconciler: EachCluster, view: FakeView, cluster: Key = MINE) -> Plan:
    observed = reconciler.observe(cluster, view, None)
    assert observed is not None
    return reconciler.plan(observed)


def strangers(country: Country, actions: Iterator[Action]) -> list[Action]:
    """Actions that are about something of another Cluster."""
    own = of_cluster(OPTIONS, MINE)
    kept = {own.memory_key, own.status_key}
    found: list[Action] = []
    for action in actions:
        if isinstance(action, Create):
            good = key_of(action.body) in kept
        else:
            kind, key = action.target.kind, action.target.key  # type: ignore[union-attr]
            good = (
                country.is_mine(kind, key)
                if kind in OURS
                else key in kept
                if kind == CONFIG_MAP
                else kind in WORKLOAD_KINDS and isinstance(action, Event)
            )
        if not good:
            found.append(action)
    return found


@pytest.mark.parametrize("seed", range(60))
def test_no_action_for_a_cluster_names_an_object_of_another(seed: int) -> None:
    country = Country(Random(seed))
    unneeded = Memory({name: country.fleets[MINE].now - timedelta(hours=1) for name in country.fleets[MINE].nodes})
    kept = config_map(of_cluster(OPTIONS, MINE).memory_key.name, memory=write(unneeded))
    honest = list(planned(many(), country.view(MINE, None, kept)).actions())
    country.lie()
    view = country.view(MINE, None, kept)
    lied = list(planned(many(), view).actions())
    assert strangers(country, iter((*honest, *lied))) == []
    assert honest == lied, "what others say of their objects changes nothing here"
    seen = ViewOfCluster(view, MINE)
    for kind in OURS:
        assert all(cluster_key_of(kind, body) == MINE for body in seen.all(kind))
        theirs = [body for body in country.bodies(kind) if cluster_key_of(kind, body) == OTHER]
        assert not [body for body in theirs if seen.get(kind, key_of(body)) or seen.by_uid(kind, _uid(body))]


def _uid(body: Obj) -> str:
    return str(body["metadata"]["uid"])


class Taken(AllOurs):
    """Another process has it; ``released``: what was given back."""

    def __init__(self, why: Refused | None) -> None:
        self.why = why
        self.released: list[Key] = []

    def ask(self, controller: str, cluster: Key) -> Refused | None:
        return self.why

    def release(self, controller: str, cluster: Key) -> None:
        self.released.append(cluster)


def test_what_another_process_serves_is_left_alone_and_the_cluster_says_whose_it_is() -> None:
    country = Country(Random(1))
    country.fleets[MINE].pod("waiting")
    reconciler = many().with_claims(Taken(Refused("somebody serves it", by_another=True)))
    plan = planned(reconciler, country.view())
    assert [(type(a), a.target.key, a.reason) for a in plan.actions() if isinstance(a, Event)] == [
        (Event, MINE, "AnotherAutoscaler")
    ]
    assert len(list(plan.actions())) == 1
    assert plan.outcome == Wait(10.0, "somebody serves it")
    being_claimed = many().with_claims(Taken(Refused("it is being claimed")))
    assert not list(planned(being_claimed, country.view()).actions())
    assert not reconciler.made


def test_a_cluster_that_is_gone_is_forgotten_given_back_and_what_was_kept_of_it_goes() -> None:
    country, claims = Country(Random(1)), Taken(None)
    reconciler = many().with_claims(claims)
    planned(reconciler, country.view())
    assert reconciler.made == {MINE}
    own = of_cluster(OPTIONS, MINE)
    left = country.view(MINE, None, config_map(own.memory_key.name), config_map(own.status_key.name))
    left = left.drop(CLUSTER, "mine", "ns")
    gone = planned(reconciler, left)
    assert {action.target.key for action in gone.actions()} == {own.memory_key, own.status_key}  # type: ignore[union-attr]
    assert not reconciler.made
    assert not claims.released, "not before they are gone"
    assert reconciler.observe(MINE, country.view().drop(CLUSTER, "mine", "ns"), None) is None
    assert claims.released == [MINE]


def test_what_another_process_keeps_of_a_cluster_that_is_gone_is_not_ours_to_delete() -> None:
    country = Country(Random(1))
    reconciler = many().with_claims(Taken(Refused("somebody serves it", by_another=True)))
    left = country.view(MINE, None, config_map(of_cluster(OPTIONS, MINE).memory_key.name))
    assert all(isinstance(a, Event) for a in planned(reconciler, left.drop(CLUSTER, "mine", "ns")).actions())


def test_while_something_can_t_be_read_there_it_counts_as_unreachable_and_nothing_is_scaled() -> None:
    """A process that also drains reaches the cluster without it."""
    country = Country(Random(3))
    country.fleets[MINE].pod("waiting")
    lacking = Reached("mine-kubeconfig", lacking="csinodes: 403 (Forbidden)")
    view = country.view(MINE, lacking)
    assert isinstance(ViewOfCluster(view, MINE).workload, Unreachable)
    plan = planned(many(), view)
    assert any("csinodes: 403" in note for note in plan.notes)
    assert not strangers(country, plan.actions())
    assert all(action.target.kind != MACHINE for action in plan.actions() if not isinstance(action, Create))  # type: ignore[union-attr]


def test_a_kind_that_is_not_served_there_is_said_on_the_cluster() -> None:
    options = replace(OPTIONS, provisioning_requests=True)
    missing = Reached("mine-kubeconfig", missing=frozenset({"provisioningrequests"}))
    plan = planned(many(options), Country(Random(2)).view(MINE, missing))
    (event,) = [a for a in plan.actions() if isinstance(a, Event) and a.target.kind == CLUSTER]
    assert event.reason == "CustomResourceDefinitionMissing"
    assert "Cluster ns/mine does not serve provisioningrequests.autoscaling.x-k8s.io" in event.why


def test_whose_a_config_map_is_stands_in_its_name() -> None:
    for cluster in (Key("a", "b.c"), Key("a-b", "c"), MINE):
        own = of_cluster(OPTIONS, cluster)
        assert {cluster_kept_in(key, OPTIONS.namespace) for key in (own.memory_key, own.status_key)} == {cluster}
    for name in (names.AUTOSCALER_MEMORY, f"{names.AUTOSCALER_MEMORY}.a", f"{names.AUTOSCALER_MEMORY}.a.", "x.a.b"):
        assert cluster_kept_in(Key(OPTIONS.namespace, name), OPTIONS.namespace) is None
    assert cluster_kept_in(Key("elsewhere", f"{names.AUTOSCALER_MEMORY}.a.b"), OPTIONS.namespace) is None


def test_nothing_of_the_management_cluster_s_nodes_and_pods_is_read_for_them() -> None:
    each = (many(),)
    assert not {*kinds_of(each)} & WORKLOAD_KINDS
    assert {NODE, POD} <= {*kinds_in(each, MINE)}
    assert claims_of(each) == (), "each Cluster is claimed by itself"
    both = for_each_cluster((AutoscalerReconciler(replace(OPTIONS, clusters=ClusterChoice())),))
    assert [type(reconciler) for reconciler in both] == [AutoscalerReconciler, EachCluster]
    assert {NODE, POD} <= {*kinds_of(both)}


def test_a_reconciler_of_other_clusters_is_not_made_for_those_that_are_not_chosen() -> None:
    country, made = Country(Random(1)), []

    def make(cluster: Key) -> Any:
        made.append(cluster)
        return AutoscalerReconciler(of_cluster(OPTIONS, cluster))

    reconciler = EachCluster(make, make(Key("", "")), Clusters(lambda cluster: key_of(cluster) == OTHER))
    assert reconciler.observe(MINE, country.view(), None) is None
    assert made == [Key("", "")]

"""Random little clusters: few labels and few values, so that everything meets everything."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from api.selectors import EVERYTHING, NOTHING, Operator, Requirement, Selector
from controllers.scheduling.shapes import (
    HOSTNAME,
    Demand,
    HostPort,
    NodeInfo,
    NodeTerm,
    PodKind,
    PodTerm,
    Spread,
    Taint,
    Toleration,
    Volume,
)

ZONE = "zone"
ZONES = ("a", "b", "c")
APPS = ("web", "db")
NAMESPACES = {"default": {"team": "x"}, "other": {"team": "y"}}
SPOT = Taint("spot", "yes", "NoSchedule")
SOFT = Taint("soft", "", "PreferNoSchedule")

node_requirements = st.sampled_from(
    [
        Requirement(ZONE, Operator.IN, ("a", "b")),
        Requirement(ZONE, Operator.NOT_IN, ("a",)),
        Requirement(ZONE, Operator.EXISTS),
        Requirement("size", Operator.DOES_NOT_EXIST),
        Requirement("size", Operator.GREATER, ("1",)),
        Requirement("size", Operator.LESS, ("3",)),
        Requirement(HOSTNAME, Operator.IN, ("n-0", "n-2")),
        Requirement(HOSTNAME, Operator.NOT_IN, ("n-1",)),
    ]
)
names = st.sampled_from(
    [Requirement("metadata.name", Operator.IN, ("n-1",)), Requirement("metadata.name", Operator.NOT_IN, ("n-0",))]
)
pod_selectors = st.sampled_from(
    [
        Selector((Requirement("app", Operator.IN, ("web",)),)),
        Selector((Requirement("app", Operator.IN, ("db",)),)),
        Selector((Requirement("app", Operator.EXISTS),)),
        EVERYTHING,
        NOTHING,
    ]
)
topologies = st.sampled_from([HOSTNAME, ZONE, ZONE, "rack"])
pod_terms = st.builds(
    PodTerm,
    pod_selectors,
    topologies,
    st.sampled_from([frozenset({"default"}), frozenset({"other"}), frozenset({"default", "other"}), frozenset()]),
    st.sampled_from([NOTHING, NOTHING, EVERYTHING, Selector((Requirement("team", Operator.IN, ("y",)),))]),
)
spreads = st.builds(
    Spread,
    st.integers(1, 3),
    topologies,
    pod_selectors,
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
ports = st.sampled_from(
    [HostPort("0.0.0.0", "TCP", 80), HostPort("127.0.0.1", "TCP", 80), HostPort("0.0.0.0", "UDP", 80)]
)
volumes = st.sampled_from(
    [
        Volume("v-1", "disk", (NodeTerm((Requirement(ZONE, Operator.IN, ("a",)),)),)),
        Volume("v-2", "disk", zones=(Requirement(ZONE, Operator.IN, ("a", "b")),)),
        Volume("v-3", "disk", exclusive=True),
        Volume("v-4", "disk"),
    ]
)


def few(strategy: Any, most: int = 1) -> Any:
    """Mostly none."""
    return st.one_of(st.just(()), st.lists(strategy, max_size=most).map(tuple))


def demands(rich: bool = True) -> Any:
    requests = st.tuples(st.integers(1, 6), st.integers(0, 4), st.integers(0, 1)).map(
        lambda found: tuple(
            (name, amount) for name, amount in zip(("cpu", "memory", "x/gpu"), found, strict=True) if amount
        )
    )
    plain = {"requests": requests}
    if not rich:
        return st.builds(Demand, **plain)
    return st.builds(
        Demand,
        **plain,
        node_selector=few(node_requirements),
        node_terms=st.one_of(
            st.none(),
            st.none(),
            st.lists(st.builds(NodeTerm, few(node_requirements, 2), few(names)), min_size=1, max_size=2).map(tuple),
        ),
        tolerations=few(st.sampled_from([Toleration("", "Exists", "", ""), Toleration("spot", "", "yes", "")])),
        ports=few(ports, 2),
        affinity=few(pod_terms, 2),
        anti_affinity=few(pod_terms, 2),
        spread=few(spreads, 2),
        volumes=few(volumes, 2),
    )


def kinds(rich: bool = True) -> Any:
    return st.builds(
        PodKind,
        demands(rich),
        st.sampled_from(sorted(NAMESPACES)),
        st.fixed_dictionaries({"app": st.sampled_from(APPS)}, optional={"index": st.sampled_from("123")}),
        terminating=st.sampled_from([False, False, False, True]),
    )


@st.composite
def nodes(draw: Any, least: int = 0, most: int = 5) -> list[NodeInfo]:
    found = []
    for index in range(draw(st.integers(least, most))):
        found.append(draw(node(f"n-{index}")))
    return found


@st.composite
def node(draw: Any, name: str) -> NodeInfo:
    labels = {HOSTNAME: name}
    for key, values in ((ZONE, (*ZONES, "")), ("rack", ("r", "")), ("size", ("1", "2", "3", "big", ""))):
        value = draw(st.sampled_from(values))
        if value:
            labels[key] = value
    return NodeInfo(
        name,
        labels,
        (
            ("cpu", draw(st.integers(1, 16))),
            ("memory", draw(st.integers(1, 12))),
            ("pods", draw(st.integers(1, 8))),
            ("x/gpu", draw(st.integers(0, 3))),
        ),
        draw(st.sampled_from([(), (), (), (SPOT,), (SOFT,), (SOFT, SPOT)])),
        draw(st.sampled_from([False, False, False, True])),
        draw(st.sampled_from([(), (("disk", 1),), (("disk", 2),)])),
    )

"""Whatever a pool looks like: nobody goes who must not, never too many, and the backend never has to choose."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controllers.cloudpool.messages import MachineState, PoolSize
from controllers.cloudpool.scaledown import Forward, Refused, Shrink
from controllers.cloudpool.scaledown import plan_size as plan
from tests.controllers.cloudpool.fleet import Fleet, machine, node, pod
from tests.examples import usually

STATES = [str(state) for state in MachineState]


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Machines of all states and memberships, some of them Nodes, and pods on these."""
    count = draw(st.integers(0, 6))
    machines = [
        machine(f"m{n}", draw(st.sampled_from(STATES)), draw(st.booleans()), draw(st.booleans())) for n in range(count)
    ]
    named = [f"m{n}" for n in range(count) if draw(st.booleans())] + (["stranger"] if draw(st.booleans()) else [])
    nodes = [node(name, draw(st.sampled_from(["1", "4"])), draw(st.booleans())) for name in named]
    cpus = st.sampled_from(["100m", "900m"])
    pods = [pod(f"p{n}", draw(st.sampled_from(named)), draw(cpus)) for n in range(draw(st.integers(0, 5))) if named]
    return Fleet(nodes, pods, machines=machines, gone=frozenset(draw(st.sets(st.sampled_from(["m0", "m1"])))))


@usually(40)
@given(fleets(), st.integers(0, 8), st.integers(0, 8))
def test_a_plan_is_safe_whatever_the_pool_looks_like(fleet: Fleet, wanted: int, desired: int) -> None:
    observed = fleet.observed()
    shown = sum(each.active for each in observed.machines)
    found = plan(observed, PoolSize(wanted, shown, shown), desired)
    alive = {each.id for each in observed.active}
    match found:
        case Forward(size=size):
            assert size == desired
            assert desired >= min(len(alive), wanted), "the backend would have to choose"
        case Refused(why=why):
            assert why
            assert min(len(alive), wanted) > desired
        case Shrink(victims=victims, missing=missing):
            ids = [victim.machine.id for victim in victims]
            assert len(ids) == len(set(ids))
            assert set(ids) <= alive
            assert all(victim.machine.membership.evictable for victim in victims)
            assert len(ids) + missing == min(len(alive), wanted) - desired
            assert all(victim.why for victim in victims)
            silent = {each["metadata"]["name"] for each in fleet.nodes} - {victim.node for victim in victims}
            assert silent or not any(body["spec"]["nodeName"] in {v.node for v in victims} for body in fleet.pods)

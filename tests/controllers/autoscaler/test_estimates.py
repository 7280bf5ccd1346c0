"""What is kept of one step's estimates for the next one is what would be estimated anew."""

from __future__ import annotations

from typing import Any
from unittest import mock

from hypothesis import event, given
from hypothesis import strategies as st

from controllers.autoscaler.decision import Decision
from controllers.autoscaler.estimates import Estimates
from controllers.scheduling.estimator import Estimator
from tests.controllers.autoscaler.fleet import ZONE, Fleet
from tests.examples import usually

HOSTNAME = "kubernetes.io/hostname"
KEYS = st.sampled_from([HOSTNAME, HOSTNAME, ZONE])
KINDS = st.sampled_from(["plain", "zoned", "spread", "apart", "together", "other apart", "spread anywhere"])


def spec_of(kind: str, key: str, app: str, zone: str) -> dict[str, Any]:
    mine, others = ({"matchLabels": {"app": each}} for each in (app, "a"))
    selector = {} if kind == "plain" else {"nodeSelector": {ZONE: zone}}
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": mine}
    required = "requiredDuringSchedulingIgnoredDuringExecution"

    def term(labels: dict[str, Any]) -> dict[str, Any]:
        return {required: [{"topologyKey": key, "labelSelector": labels}]}

    more: dict[str, dict[str, Any]] = {
        "spread": {"topologySpreadConstraints": [spread]},
        "spread anywhere": {"topologySpreadConstraints": [{**spread, "nodeAffinityPolicy": "Ignore"}]},
        "apart": {"affinity": {"podAntiAffinity": term(mine)}},
        "other apart": {"affinity": {"podAntiAffinity": term(others)}},
        "together": {"affinity": {"podAffinity": term(mine)}},
    }
    return {**selector, **more.get(kind, {})}


rows = st.tuples(st.integers(1, 5), st.sampled_from(["1", "2", "3"]), KINDS, KEYS, st.sampled_from(["z1", "z2"]))


def decided(pods: list[tuple[int, str, str, str, str]], most: int) -> tuple[Decision, int]:
    """And how many estimates were made."""
    fleet = Fleet()
    for zone in ("z1", "z2"):
        for cpu in ("2", "4"):
            fleet.group(f"{zone}-{cpu}", most=most, cpu=cpu, labels=f"{ZONE}={zone},{HOSTNAME}=any")
    for number, (count, cpu, kind, key, zone) in enumerate(pods):
        app = "ab"[number % 2]
        for index in range(count):
            pod = fleet.pod(f"p{number}-{index}", cpu, **spec_of(kind, key, app, zone))
            pod["metadata"]["labels"] = {"app": app}
            pod["metadata"]["ownerReferences"][0]["uid"] = f"rs-{number}"
    with mock.patch.object(Estimator, "estimate", autospec=True, side_effect=Estimator.estimate) as made:
        return fleet.decide(), made.call_count


def outcome_of(decision: Decision) -> Any:
    helped = [(each.group, [pod.name for pod in each.pods], each.planned) for each in decision.scale_up.helped]
    return decision.scale_up.added, helped, [[pod.name for pod in left.pods] for left in decision.scale_up.left]


@given(st.lists(rows, min_size=2, max_size=6), st.sampled_from([3, 20]))
@usually(60)
def test_keeping_estimates_changes_no_decision(pods: list[tuple[int, str, str, str, str]], most: int) -> None:
    found, made = decided(pods, most)
    with mock.patch.object(Estimates, "_is_changed", return_value=True):
        anew, made_anew = decided(pods, most)
    event(f"kept some: {made < made_anew}")
    assert outcome_of(found) == outcome_of(anew)


def test_a_zone_that_grew_is_no_reason_to_estimate_for_the_other_one() -> None:
    pods = [(4, "3", "apart", HOSTNAME, "z1"), (4, "3", "spread", HOSTNAME, "z2"), (3, "1", "apart", HOSTNAME, "z2")]
    _, made = decided(pods, 20)
    with mock.patch.object(Estimates, "_is_changed", return_value=True):
        _, made_anew = decided(pods, 20)
    assert made < made_anew

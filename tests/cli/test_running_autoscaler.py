"""``autoscaler explain`` without flags: which autoscaler runs, by which options, and what it decided last."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api.names import LEASE_HOLDER_ANNOTATION as HOLDER
from controllers.autoscaler.decision import Decision
from controllers.autoscaler.memory import Memory
from controllers.autoscaler.metrics import decisions_text, options_text
from controllers.autoscaler.options import AutoscalerOptions, ShrinkOptions
from controllers.autoscaler.scale_up import ScaleUp
from controllers.kernel.conditions import format_time
from controllers.kernel.refs import Key
from nodewright.cli.autoscaling import Flags, options_of, tells_where_alone
from nodewright.cli.running_autoscaler import Given, Running, running
from nodewright.runtime.election.claims import Claim, Holder
from tests.builders import NOW

ITS = AutoscalerOptions(shrink=ShrinkOptions(enabled=False))
PLAIN = Given(AutoscalerOptions(), plain=True)


def lease(controller: str = "autoscaler", cluster: str = "", seconds: float = 3) -> dict[str, Any]:
    holder = Holder("me", "nodewright run", claims=(Claim(controller, cluster),))
    spec = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": format_time(NOW - timedelta(seconds=seconds)),
    }
    meta = {"namespace": "nodewright-system", "name": "l", "annotations": {HOLDER: holder.annotation()}}
    return {"metadata": meta, "spec": spec}


def published(options: AutoscalerOptions = ITS) -> dict[str, Any]:
    decision = Decision(memory=Memory(), scale_up=ScaleUp(added={"MachineDeployment/ns/web": 2}))
    return {"data": {"options": options_text(options), "decisions": decisions_text("", decision, NOW)}}


def text_of(found: Running) -> str:
    return "\n".join(
        [each.text for each in found.description.below] + [one.text for e in found.description.below for one in e.below]
    )


def test_without_flags_the_options_of_the_running_one_count() -> None:
    found = running(published(), [lease()], PLAIN, NOW)
    assert found.options == ITS
    text = text_of(found)
    assert "runs: nodewright run" in text
    assert "seen 3s ago" in text
    assert "options: those that it published in ConfigMap kube-system/cluster-autoscaler-status" in text
    assert "MachineDeployment/ns/web: 2 Nodes more" in text


def test_flags_win_and_a_difference_is_told() -> None:
    given = Given(AutoscalerOptions(), plain=False)
    found = running(published(), [lease()], given, NOW)
    assert found.options == given.options
    assert "options: those given here, which are not those that it published" in text_of(found)


@pytest.mark.parametrize("leases", [[], [lease(seconds=300)], [lease("machine")], [lease(cluster="default/prod")]])
def test_that_none_runs_is_told_with_how_to_start_it(leases: list[dict[str, Any]]) -> None:
    text = text_of(running({}, leases, PLAIN, NOW))
    assert "none runs: start it with `nodewright run --controllers=autoscaler`" in text
    assert "options: the defaults" in text


def test_that_of_another_cluster_is_another_one() -> None:
    given = Given(replace(AutoscalerOptions(), cluster=Key("default", "prod")), plain=True)
    assert "runs: " in text_of(running({}, [lease(cluster="default/prod")], given, NOW))
    assert "--cluster=default/prod`" in text_of(running({}, [lease()], given, NOW))


def test_leases_that_may_not_be_read_leave_it_open() -> None:
    assert "is unknown: leases is forbidden" in text_of(running(published(), "leases is forbidden", PLAIN, NOW))


def test_where_it_is_looked_for_is_not_taken_from_what_others_wrote() -> None:
    elsewhere = replace(ITS, namespace="theirs", cluster=Key("a", "b"))
    found = running(published(elsewhere), [], PLAIN, NOW)
    assert (found.options.namespace, found.options.cluster) == ("kube-system", None)


def test_flags_that_only_say_where_it_is_change_no_option() -> None:
    assert tells_where_alone(Flags())
    assert tells_where_alone(replace(Flags(), cluster="default/prod", autoscaler_namespace="scaling"))
    assert not tells_where_alone(replace(Flags(), expander="random"))
    assert options_of(Flags()) == AutoscalerOptions()

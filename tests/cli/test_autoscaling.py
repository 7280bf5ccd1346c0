"""The autoscaler's options: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path

import pytest

from controllers.autoscaler.options import AutoscalerOptions, Range
from controllers.kernel.refs import PROVISIONING_REQUEST, Key
from controllers.provisioningrequest.options import ProvisioningOptions
from controllers.scaling.node_group import Bounds, Filter
from nodewright.cli.autoscaling import Flags, options_of
from nodewright.cli.election import reconcilers_named
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.provisioning import provisioning_of
from tests.docs.pages import ROOT

GIB = 1024**3


def test_without_any_they_are_the_cluster_autoscaler_s_defaults() -> None:
    assert options_of(Flags()) == AutoscalerOptions()
    assert provisioning_of(Flags()) == ProvisioningOptions()


def test_every_option_changes_something() -> None:
    """But those that are switches or numbers already at an end of their range."""
    other = {str: "7m", int: 7, float: 0.25}
    special = {
        "nodes": ["1:2:ns/a"],
        "node_group_auto_discovery": ["clusterapi:namespace=ns"],
        "expander": "most-pods,random",
        "startup_taint": ["example.com/warming"],
        "gangs": ["scheduling.k8s.io/v1beta1"],
        "cores_total": "1:9",
        "memory_total": "1:9",
        "scale_up_rate": "5:1m",
        "scheduler_scoring_strategy": "LeastAllocated",
        "consolidation_window": ["0 22 * * mon-fri=6h"],
        "autoscaler_namespace": "ns",
        "cluster": "default/prod",
    }
    for each in fields(Flags):
        value = special.get(each.name, not each.default if isinstance(each.default, bool) else None)
        value = other[type(each.default)] if value is None else value
        flags = replace(Flags(), **{each.name: value})
        assert (options_of(flags), provisioning_of(flags)) != (AutoscalerOptions(), ProvisioningOptions()), each.name


def test_what_they_say_is_understood() -> None:
    found = options_of(
        Flags(
            nodes=["1:10:default/workers", "0:3:other/gpu"],
            node_group_auto_discovery=["clusterapi:namespace=ns,clusterName=prod,pool=a", "clusterapi:pool=b"],
            memory_total="2:64",
            scale_up_rate="100:10m",
            max_total_unready_percentage=30,
        )
    )
    assert found.discovery.given == {Key("default", "workers"): Bounds(1, 10), Key("other", "gpu"): Bounds(0, 3)}
    assert found.discovery.filters == (Filter("ns", "prod", (("pool", "a"),)), Filter("", "", (("pool", "b"),)))
    assert found.growth.memory == Range(2 * GIB, 64 * GIB)
    assert (found.growth.nodes_per_window, found.growth.window) == (100, timedelta(minutes=10))
    assert found.health.most_unready == 0.3


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"cluster": "prod"}, "--cluster: 'prod' is not like default/prod"),
        ({"cluster": "default/prod", "clusters": "all"}, "--cluster and --clusters contradict each other"),
        ({"clusters": "tier in gold"}, "--clusters: "),
        ({"clusters": "all", "nodes": ["1:2:ns/a"]}, "--nodes names groups, and with --clusters"),
        ({"scan_interval": "often"}, "--scan-interval: 'often'"),
        ({"scan_interval": "0s"}, "--scan-interval: must be more than 0"),
        ({"nodes": ["workers"]}, "--nodes: 'workers' is not like 1:10:default/workers"),
        ({"nodes": ["3:1:ns/a"]}, "--nodes: in '3:1:ns/a' the maximum is less"),
        ({"node_group_auto_discovery": ["mig:namespace=x"]}, "--node-group-auto-discovery: 'mig:namespace=x'"),
        ({"node_group_auto_discovery": ["clusterapi:pool"]}, "--node-group-auto-discovery: 'clusterapi:pool'"),
        ({"expander": "best"}, "--expander: no expander is called 'best'"),
        ({"expander": "random,price"}, "--expander: nothing may follow random"),
        ({"cores_total": "9:1"}, "--cores-total: '9:1'"),
        ({"memory_total": "much"}, "--memory-total: 'much'"),
        ({"scale_up_rate": "0:1m"}, "--scale-up-rate: '0:1m'"),
        ({"scale_up_rate": "5"}, "--scale-up-rate: "),
        ({"scheduler_scoring_strategy": "MostAllocated"}, "--scheduler-scoring-strategy: 'MostAllocated'"),
        ({"consolidation_threshold": 0.0}, "--consolidation-threshold: must be more than 0"),
        ({"consolidation_window": ["0 22 * * mon-fri"]}, "--consolidation-window: '0 22 * * mon-fri' is not like"),
        ({"consolidation_window": ["at night=6h"]}, "--consolidation-window: 'at night' is not a cron schedule"),
        ({"consolidation_window": ["0 22 * * *=long"]}, "--consolidation-window: 'long'"),
        ({"startup_taint": ["a/b=true:NoSchedule"]}, "--startup-taint: 'a/b=true:NoSchedule'"),
        ({"startup_taint": ["/"]}, "--startup-taint: '/' is no key"),
        ({"max_node_provision_time": "15"}, "--max-node-provision-time: '15'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_means_nothing_is_refused_by_the_name_of_the_option(flags: dict[str, object], expected: str) -> None:
    with pytest.raises(CliError) as raised:
        options_of(replace(Flags(), **flags))
    assert expected in str(raised.value)
    assert raised.value.code == USAGE


def test_it_runs_only_where_it_is_named_and_with_the_options_given() -> None:
    assert "autoscaler" not in {reconciler.name for reconciler in reconcilers_named("*")}
    options = options_of(Flags(autoscaler_namespace="ns"))
    (reconciler,) = reconcilers_named("autoscaler", autoscaler=lambda: options)
    assert reconciler.options == options  # type: ignore[attr-defined]


def test_the_controller_of_requests_beside_it_makes_it_know_of_them() -> None:
    alone, (beside, requests) = reconcilers_named("autoscaler"), reconcilers_named("autoscaler,provisioningrequest")
    assert not alone[0].options.provisioning_requests  # type: ignore[attr-defined]
    assert beside.options.provisioning_requests  # type: ignore[attr-defined]
    assert requests.setting.options == ProvisioningOptions()  # type: ignore[attr-defined]
    assert PROVISIONING_REQUEST not in alone[0].reads, "no CRD is needed without it"


def test_the_page_says_which_options_are_our_own() -> None:
    page = Path(ROOT / "docs" / "cli.md").read_text()
    assert "of its own are `--scale-up-rate` and `--autoscaler-namespace`" in page

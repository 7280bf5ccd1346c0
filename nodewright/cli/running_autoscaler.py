"""The autoscaler that runs, as the API server shows it: its Lease, the options it published, its last decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controllers.autoscaler.options import AutoscalerOptions
    from controllers.autoscaler.refusing import Answer
    from controllers.kernel.refs import Key, Obj
    from nodewright.runtime.cache.cache import CacheView
    from nodewright.runtime.kube.client import KubeClient

MOST_SHOWN = 5
"""Past decisions that are shown."""
_CONTROLLER = "autoscaler"


@dataclass(frozen=True, slots=True)
class Given:
    """Options of a command line. ``plain``: they say at most where the autoscaler is, so what it published counts."""

    options: AutoscalerOptions
    plain: bool


@dataclass(frozen=True, slots=True)
class Running:
    """``options``: those to decide by. ``description``: what there is to say of the one that runs."""

    options: AutoscalerOptions
    description: Answer


async def read_running(client: KubeClient, given: Given) -> Running:
    """Raises ApiError and NoAnswer as the client does; a Lease that may not be read is reported, not raised."""
    from controllers.kernel.refs import CONFIG_MAP  # noqa: PLC0415
    from nodewright.cli.commands.describe import leases_of  # noqa: PLC0415
    from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

    config_map: Mapping[str, Any] = {}
    try:
        config_map = await client.get(CONFIG_MAP, given.options.status_key)
    except ApiError as error:
        if not error.not_found:
            raise
    return running(config_map, await leases_of(client), given, datetime.now(UTC))


def running(config_map: Mapping[str, Any], leases: Iterable[Obj] | str, given: Given, now: datetime) -> Running:
    """``config_map`` {}: there is none. ``leases``: those of the controllers, or why they can't be read."""
    from controllers.autoscaler.metrics import DECISIONS, OPTIONS, read_decisions, read_options  # noqa: PLC0415
    from controllers.autoscaler.refusing import Answer  # noqa: PLC0415
    from controllers.kernel.conditions import format_time  # noqa: PLC0415

    data = config_map.get("data") or {}
    published = read_options(str(data.get(OPTIONS) or ""))
    made = read_decisions(str(data.get(DECISIONS) or ""))[-MOST_SHOWN:]
    below = [Answer(_who(leases, str(given.options.cluster or ""), now))]
    key = given.options.status_key
    if not given.plain:
        differs = published is not None and published != given.options
        below.append(Answer(f"options: those given here{', which are not those that it published' if differs else ''}"))
    elif published is not None:
        below.append(Answer(f"options: those that it published in ConfigMap {key}"))
    else:
        hint = "give those that it runs with"
        below.append(Answer(f"options: the defaults; none can be read in ConfigMap {key}, so {hint}"))
    decisions = tuple(Answer(f"{format_time(each.at)} {each.text}") for each in reversed(made))
    if decisions:
        below.append(Answer("last decisions", decisions))
    options = given.options
    if given.plain and published is not None:
        options = replace(published, namespace=options.namespace, cluster=options.cluster)
    return Running(options, Answer("Autoscaler", tuple(below)))


def _who(leases: Iterable[Obj] | str, cluster: str, now: datetime) -> str:
    from controllers.kernel.conditions import parse_time  # noqa: PLC0415
    from nodewright.reports.tree.drawing import age  # noqa: PLC0415
    from nodewright.reports.tree.serving import live  # noqa: PLC0415
    from nodewright.runtime.election.lease import spec_of  # noqa: PLC0415

    if isinstance(leases, str):
        return f"whether one runs is unknown: {leases}"
    for lease in leases:
        for serving in live([lease], now):
            if any(claim.controller == _CONTROLLER and claim.cluster == cluster for claim in serving.holder.claims):
                seen = age(parse_time(spec_of(lease).get("renewTime")), now)
                return f"runs: {serving.holder}, Lease {serving.lease}, seen {seen} ago"
    of, option = (f" for Cluster {cluster}", f" --cluster={cluster}") if cluster else ("", "")
    return f"none runs{of}: start it with `nodewright run --controllers=autoscaler{option}`"


async def reader_of(client: KubeClient, options: AutoscalerOptions, hosts: object) -> Callable[[], CacheView]:
    """The cluster as it was a moment ago."""
    from controllers.autoscaler.reconciler import AutoscalerReconciler  # noqa: PLC0415
    from controllers.kernel.node_policy import recorded_secret  # noqa: PLC0415
    from controllers.kernel.refs import CLUSTER  # noqa: PLC0415
    from controllers.kernel.view import Reached, Unreachable  # noqa: PLC0415
    from nodewright.cli.cluster.snapshot import now_view, read_cluster, read_workload_cluster  # noqa: PLC0415
    from nodewright.runtime.hosts.directory import HostDirectory  # noqa: PLC0415
    from nodewright.runtime.settings import wiring  # noqa: PLC0415

    assert isinstance(hosts, HostDirectory)
    reconciler = AutoscalerReconciler(options)
    cache = await read_cluster(client, wiring.kinds_of((reconciler,)), reconciler.parts)
    if options.cluster is not None:
        kinds = wiring.kinds_in((reconciler,), options.cluster)
        remote = await read_workload_cluster(client, options.cluster, kinds, reconciler.parts)
        return lambda: replace(now_view(cache), workload=Reached(""), remote=remote, shapes=hosts.shape)

    def of_cluster(cluster: Key | None) -> CacheView:
        """Whether it was ever seen to have an API of its own is all that matters here."""
        secret = recorded_secret(cache.stores[CLUSTER].get(cluster)) if cluster is not None else ""
        return replace(now_view(cache), workload=Unreachable(secret, "", "")) if secret else now_view(cache)

    return lambda: replace(now_view(cache), shapes=hosts.shape, sees=of_cluster)

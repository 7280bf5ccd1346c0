"""What the autoscaler scales, as options say it: which Clusters, and which groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodewright.cli.exits import USAGE, CliError

if TYPE_CHECKING:
    from controllers.autoscaler.options import ClusterChoice
    from controllers.kernel.refs import Key
    from controllers.scaling.node_group import Bounds, Discovery, Filter
    from nodewright.cli.autoscaling import Flags

_ALL = "all"


def must_scale(flags: Flags, scales: bool) -> None:
    """Raises CliError where ``--cluster`` or ``--clusters`` is given to one that runs no autoscaler, and where an
    autoscaler has nothing to scale.
    """
    if not (flags.management_cluster or flags.clusters):
        raise CliError("--no-management-cluster leaves nothing to scale", "Give --clusters, too", USAGE)
    given = next((name for name, value in (("--cluster", flags.cluster), ("--clusters", flags.clusters)) if value), "")
    if given and not scales:
        hint = "Name it: run --controllers=autoscaler, or up --autoscaler"
        raise CliError(f"{given} is for the autoscaler, and none runs here", hint, USAGE)


def cluster_of(flags: Flags) -> Key | None:
    from controllers.kernel.refs import Key  # noqa: PLC0415

    if not flags.cluster:
        return None
    namespace, _, name = flags.cluster.partition("/")
    if not (namespace and name) or "/" in name:
        raise CliError(f"--cluster: {flags.cluster!r} is not like default/prod", code=USAGE)
    return Key(namespace, name)


def clusters_of(flags: Flags) -> ClusterChoice | None:
    """Raises CliError (usage) for a selector that can't be read, and for options that contradict it."""
    from api.selectors import EVERYTHING, NOTHING, SelectorError, parse  # noqa: PLC0415
    from controllers.autoscaler.options import ClusterChoice  # noqa: PLC0415

    if not flags.clusters:
        return None if flags.management_cluster else ClusterChoice(NOTHING, home=False)
    if flags.cluster:
        raise CliError("--cluster and --clusters contradict each other", "Leave one out", USAGE)
    if flags.nodes:
        hint = "Give groups their bounds by annotations"
        raise CliError("--nodes names groups, and with --clusters each autoscaler has others", hint, USAGE)
    try:
        selector = EVERYTHING if flags.clusters == _ALL else parse(flags.clusters)
    except SelectorError as error:
        raise CliError(f"--clusters: {error}", "It is `all`, or written as for `kubectl get -l`", USAGE) from error
    return ClusterChoice(selector, flags.management_cluster)


def only_one(flags: Flags) -> None:
    """Raises CliError where one autoscaler has to be meant."""
    if flags.clusters:
        raise CliError("--clusters: one Cluster has to be meant", "Name it: --cluster=NAMESPACE/NAME", USAGE)


def discovery_of(flags: Flags) -> Discovery:
    from controllers.scaling.node_group import Discovery  # noqa: PLC0415

    given = dict(_given(text) for text in flags.nodes or ())
    return Discovery(given, tuple(_filter(text) for text in flags.node_group_auto_discovery or ()))


def _given(text: str) -> tuple[Key, Bounds]:
    from controllers.kernel.refs import Key  # noqa: PLC0415
    from controllers.scaling.node_group import Bounds  # noqa: PLC0415

    least, _, rest = text.partition(":")
    most, _, key = rest.partition(":")
    namespace, slash, name = key.partition("/")
    if not (least.isdigit() and most.isdigit() and namespace and slash and name):
        raise CliError(f"--nodes: {text!r} is not like 1:10:default/workers", code=USAGE)
    if int(most) < int(least):
        raise CliError(f"--nodes: in {text!r} the maximum is less than the minimum", code=USAGE)
    return Key(namespace, name), Bounds(int(least), int(most))


def _filter(text: str) -> Filter:
    from controllers.scaling.node_group import Filter  # noqa: PLC0415

    provider, colon, rest = text.partition(":")
    found = {key: value for key, _, value in (part.partition("=") for part in rest.split(",") if part)}
    if provider != "clusterapi" or not colon or not all(found.values()) or "" in found:
        raise CliError(
            f"--node-group-auto-discovery: {text!r} is not like clusterapi:namespace=default,pool=a", code=USAGE
        )
    namespace, cluster = found.pop("namespace", ""), found.pop("clusterName", "")
    return Filter(namespace, cluster, tuple(found.items()))

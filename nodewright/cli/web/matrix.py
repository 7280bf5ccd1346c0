"""Pods that wait × node groups: which group takes which pod, and why the others don't."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nodewright.cli.web.whatif import PREFIX, is_asked, with_sizes

if TYPE_CHECKING:
    from controllers.autoscaler.cluster_state import GroupState
    from controllers.autoscaler.decision import Decision
    from controllers.autoscaler.observe import Observed
    from controllers.autoscaler.refusing import Answer
    from controllers.autoscaler.scale_up import Left
    from controllers.scheduling.shapes import PodInfo
    from nodewright.cli.web.whatif import WhatIf
    from nodewright.gateways.web.source import Source

MOST_ROWS, MOST_GROUPS, MOST_NODES = 100, 50, 200
"""What a page shows; pods that are alike are one row."""
_LONGEST = 512


async def matrix(source: Source, what_if: WhatIf | None = None) -> dict[str, Any]:
    """What the autoscaler would decide now, or if ``what_if`` were so, as a value.

    Raises KubeError, AskError where it can't be known, and WhatIfError.
    """
    from controllers.autoscaler.observe import observe  # noqa: PLC0415
    from controllers.autoscaler.options import AutoscalerOptions  # noqa: PLC0415
    from controllers.kernel.refs import POD  # noqa: PLC0415
    from nodewright.cli.exits import CliError  # noqa: PLC0415
    from nodewright.cli.running_autoscaler import Given, read_running, reader_of  # noqa: PLC0415
    from nodewright.gateways.web.answers import AskError  # noqa: PLC0415
    from nodewright.runtime.hosts.credentials import secrets_by  # noqa: PLC0415
    from nodewright.runtime.hosts.directory import HostDirectory  # noqa: PLC0415
    from nodewright.runtime.hosts.objects import objects_by  # noqa: PLC0415
    from providers.base.registry import Registry  # noqa: PLC0415

    if source.namespace:
        raise AskError("an autoscaler looks at the whole cluster, and you may see one namespace", 403)
    running = await read_running(source.client, Given(AutoscalerOptions(), plain=True))
    hosts = HostDirectory(Registry.installed(), may_call=lambda: False)
    hosts.read_secrets_by(secrets_by(source.client))
    hosts.read_objects_by(objects_by(source.client))
    try:
        look = await reader_of(source.client, running.options, hosts)
        for pod in what_if.pods if what_if is not None else ():
            look().cache.watched(POD, "MODIFIED", dict(pod))
        observe(look(), running.options)  # in this loop: it has shapes of hosts looked up
        await hosts.shapes_are_known()
        observed = observe(look(), running.options)
        if what_if is not None:
            observed = with_sizes(observed, what_if.sizes)
        found = await asyncio.to_thread(as_value, observed, what_if)  # seconds of a large cluster: others go on to see
    except CliError as error:
        raise AskError(error.message, 502) from error
    finally:
        await hosts.close(0.0)
    return {"running": _tree(running.description), **found}


def _group(state: GroupState, grows: int) -> dict[str, Any]:
    return {
        "id": state.id,
        "replicas": state.group.replicas,
        "min": state.group.bounds.min_size,
        "max": state.group.bounds.max_size,
        "grows": grows,
    }


def as_value(observed: Observed, what_if: WhatIf | None = None) -> dict[str, Any]:
    """``rows``: of pods that are alike, with a cell for each group; ``groups``: sizes, bounds and what changes.

    ``asked``: of pods that are not there, how many new Nodes and Nodes that are there would take, and how many nobody.
    """
    from controllers.autoscaler.plan import decide, why_not  # noqa: PLC0415

    decision = decide(observed.cluster)
    groups = sorted(observed.cluster.groups, key=lambda state: str(state.id))[:MOST_GROUPS]
    added = decision.scale_up.added
    return {
        "paused": (why_not(observed) or decision.frozen or "")[:_LONGEST],
        "groups": [_group(state, added.get(state.id, 0)) for state in groups],
        "rows": sorted(_rows(observed, decision, [state.id for state in groups]), key=_asked_first)[:MOST_ROWS],
        "asked": _asked(decision, what_if),
        "staying": _staying(decision),
        "cooldown": decision.scale_down.cooldown[:_LONGEST],
    }


def _rows(observed: Observed, decision: Decision, groups: list[str]) -> Iterator[dict[str, Any]]:
    from controllers.autoscaler.refusing import refused  # noqa: PLC0415

    for helped in decision.scale_up.helped:
        cells = [{"state": "grows" if helped.group == group else "other", "why": ""} for group in groups]
        yield {**_pods(helped.pods), "state": "helped", "cells": cells, "changes": []}
    for left in decision.scale_up.left:
        changes = [] if not left.why else [_tree(each) for each in refused(observed.cluster, left)][1:]
        yield {**_pods(left.pods), "state": "left", "cells": list(_cells(left, groups)), "changes": changes}


def _asked_first(row: Mapping[str, Any]) -> bool:
    """Rows of pods that are not there are not cut for those of pods that are."""
    return not row["name"].startswith(PREFIX)


def _asked(decision: Decision, what_if: WhatIf | None) -> dict[str, int]:
    if what_if is None:
        return {}
    helped = sum(is_asked(pod.namespace, pod.name, what_if) for each in decision.scale_up.helped for pod in each.pods)
    left = sum(is_asked(pod.namespace, pod.name, what_if) for each in decision.scale_up.left for pod in each.pods)
    return {"pods": len(what_if.pods), "onNew": helped, "left": left, "onOld": len(what_if.pods) - helped - left}


def _cells(left: Left, groups: Iterable[str]) -> Iterator[dict[str, str]]:
    for group in groups:
        yield {"state": "no", "why": left.why.get(group, "was not tried")[:_LONGEST]}


def _pods(pods: tuple[PodInfo, ...]) -> dict[str, Any]:
    first = pods[0]
    return {"namespace": first.namespace, "name": first.name, "count": len(pods)}


def _staying(decision: Decision) -> list[dict[str, str]]:
    found = sorted(decision.scale_down.staying.items())[:MOST_NODES]
    return [{"node": node, "reason": str(each.reason), "why": each.why[:_LONGEST]} for node, each in found]


def _tree(answer: Answer) -> Mapping[str, Any]:
    return {"text": answer.text[:_LONGEST], "below": [_tree(each) for each in answer.below]}

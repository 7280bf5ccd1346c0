"""A fleet as lines for a terminal, and as a value for programs."""

from __future__ import annotations

import textwrap
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from controllers.kernel.conditions import counted, format_time
from nodewright.reports.fleet.problem import Problem
from nodewright.reports.fleet.summary import SINGULAR, Fleet
from nodewright.reports.tree.drawing import age
from nodewright.reports.tree.runbooks import runbook_for, with_runbook
from nodewright.reports.tree.serving import Serving
from nodewright.runtime.fleet.findings import Usage

if TYPE_CHECKING:
    from rich.text import Text

MOST_LINES = 40
"""Lines of a screen; what does not fit is counted."""
_MOST_MESSAGE_LINES = 3
_MOST_VERSIONS = 4
_MOST_QUOTAS = 4
_LEAST_HELD = 2
"""Lines that what is held needs: its title, and one that counts it."""


def _served_by(serving: Serving) -> dict[str, Any]:
    return {
        "lease": serving.lease,
        "holder": str(serving.holder),
        "version": serving.findings.version,
        "serves": [str(claim) for claim in serving.holder.claims],
    }


def as_value(fleet: Fleet) -> dict[str, Any]:
    """For ``-o json`` and ``-o yaml``."""
    platform = fleet.platform
    asked = {} if platform is None else {"server": platform.server, "crds": {k: [*v] for k, v in platform.crds.items()}}
    return {
        "at": format_time(fleet.now),
        **asked,
        "counts": dict(fleet.counts),
        "machines": dict(fleet.machines),
        "kubelets": dict(fleet.kubelets),
        "servedBy": [_served_by(each) for each in fleet.serving],
        "quotas": [asdict(usage) for usage in _usages(fleet)],
        "problems": [_as_value(problem) for problem in fleet.problems],
        "held": [_as_value(each) for each in fleet.held],
    }


def _as_value(problem: Problem) -> dict[str, Any]:
    value = {
        "namespace": problem.namespace,
        "object": problem.object,
        "below": problem.below,
        "reason": problem.reason,
        "message": problem.message,
        "since": format_time(problem.since) if problem.since is not None else "",
        "nextStep": problem.next_step,
        "runbook": runbook_for(problem.reason),
    }
    return {name: text for name, text in value.items() if text}


def as_lines(fleet: Fleet, width: int) -> list[Text]:
    """At most MOST_LINES lines of ``width`` columns: first what there is, then who decides, then what is wrong."""
    from rich.text import Text  # noqa: PLC0415

    drawn = [*_there_is(fleet, width), *_platform(fleet, width), *_deciding(fleet, width), *_quotas(fleet, width)]
    if fleet.problems:
        drawn.append(Text(f"✘ {counted(len(fleet.problems), 'problem')}", "bold red"))
        drawn = _filled(drawn, fleet, (fleet.problems, "more problem"), width)
    else:
        drawn.append(Text("✔ nothing is wrong", "green"))
    if fleet.held and len(drawn) + _LEAST_HELD < MOST_LINES:
        drawn.append(Text(f"‖ {len(fleet.held)} held back", "bold yellow"))
        drawn = _filled(drawn, fleet, (fleet.held, "more held line"), width)
    return drawn


def _filled(drawn: list[Text], fleet: Fleet, shown: tuple[tuple[Problem, ...], str], width: int) -> list[Text]:
    """``drawn`` and as many blocks below it as the screen has room for; those left are counted.

    A next step stands at the first of those that share it.
    """
    from rich.text import Text  # noqa: PLC0415

    problems, more = shown
    steps: set[str] = set()
    for index, problem in enumerate(problems):
        once = replace(problem, next_step="") if problem.next_step in steps else problem
        steps.add(problem.next_step)
        block = list(_shown(fleet, once, width))
        if len(drawn) + len(block) >= MOST_LINES:
            left = counted(len(problems) - index, more)
            return [*drawn, Text(f"  and {left}: -n NAMESPACE or -o json shows them", "dim")]
        drawn = [*drawn, *block]
    return drawn


def _there_is(fleet: Fleet, width: int) -> list[Text]:
    counts = [counted(number, SINGULAR[plural], plural) for plural, number in fleet.counts.items() if number]
    lines = _folded(f"Objects   {', '.join(counts) or 'nothing yet'}", width)
    if fleet.machines:
        states = ", ".join(f"{number} {state}" for state, number in fleet.machines.items())
        lines += _folded(f"Machines  {states}", width)
    if fleet.kubelets:
        versions = [f"{number}× {version}" for version, number in fleet.kubelets.items()]
        more = [f"{len(versions) - _MOST_VERSIONS} more versions"] if len(versions) > _MOST_VERSIONS else []
        lines += _folded("Kubelets  " + ", ".join(versions[:_MOST_VERSIONS] + more), width)
    return lines


def _platform(fleet: Fleet, width: int) -> list[Text]:
    """``Server    v1.34.2, 10 CRDs (v1alpha1)``, and those that it lacks."""
    if fleet.platform is None:
        return []
    served = [versions for versions in fleet.platform.crds.values() if versions]
    versions = ", ".join(sorted({version for each in served for version in each})) or "none served"
    lines = _folded(f"Server    {fleet.platform.server}, {counted(len(served), 'CRD')} ({versions})", width)
    if fleet.platform.missing:
        lines += _folded(f"Missing   {', '.join(fleet.platform.missing)}: `nodewright install` brings them", width)
    return lines


def _deciding(fleet: Fleet, width: int) -> list[Text]:
    drawn: list[Text] = []
    for each in fleet.serving:
        version = f", version {each.findings.version}" if each.findings.version else ""
        drawn += _folded(f"Decides   {each.holder}{version}, Lease {each.lease}", width)
    return drawn


def _quotas(fleet: Fleet, width: int) -> list[Text]:
    """``Quotas    openstack/prod cores 38 of 40``: those of which the largest share is used."""
    usages = _usages(fleet)
    if not usages:
        return []
    more = [f"{len(usages) - _MOST_QUOTAS} more"] if len(usages) > _MOST_QUOTAS else []
    return _folded("Quotas    " + ", ".join([*map(str, usages[:_MOST_QUOTAS]), *more]), width)


def _usages(fleet: Fleet) -> list[Usage]:
    """Of several processes that serve one account each says the same."""
    found = {(usage.account, usage.resource): usage for each in fleet.serving for usage in each.findings.quotas}
    return sorted(found.values(), key=lambda usage: -usage.share)


def _shown(fleet: Fleet, problem: Problem, width: int) -> list[Text]:
    from rich.text import Text  # noqa: PLC0415

    where = f"{problem.namespace} " if problem.namespace else ""
    title = f"{problem.below} › {problem.object}" if problem.below else problem.object
    since = age(problem.since, fleet.now)
    state = Text(problem.reason, "bold red").append(f"  for {since}" if since else "", "not bold dim")
    lines = [Text("  ").append(where, "dim").append(title, "bold")]
    if lines[0].cell_len + 2 + state.cell_len <= width:
        lines[0].append("  ").append_text(state)
    else:
        lines.append(Text("    ").append_text(state))
    wrapped = textwrap.wrap(
        problem.message, max(width - 4, 20), break_long_words=False, break_on_hyphens=False,
        max_lines=_MOST_MESSAGE_LINES, placeholder=" …",
    )  # fmt: skip
    step = with_runbook(problem.next_step, problem.reason)
    advice = f"→ {step}" if step else ""
    steps = textwrap.wrap(advice, max(width - 4, 20), break_long_words=False, break_on_hyphens=False)
    return [*lines, *(Text(f"    {line}") for line in (*wrapped, *steps))]


def _folded(text: str, width: int) -> list[Text]:
    from rich.text import Text  # noqa: PLC0415

    wrapped = textwrap.wrap(
        text, max(width, 20), subsequent_indent=" " * 10, break_long_words=False, break_on_hyphens=False
    )
    return [Text(line) for line in wrapped]

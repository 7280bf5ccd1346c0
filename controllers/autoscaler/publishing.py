"""What a running autoscaler tells of itself beside its status: the options it decides by, and its last decisions.

Both are texts of the status ConfigMap, bounded in size, and written when they say something new. Those who ask why
nothing happens (``nodewright autoscaler explain``) read them, so users need not repeat the options.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from controllers.autoscaler.decision import Decision
from controllers.autoscaler.expanders import checked
from controllers.autoscaler.options import AutoscalerOptions
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.refs import Key
from controllers.kernel.wording import counted
from controllers.scaling.discovery import Discovery
from controllers.scaling.node_group import Bounds

OPTIONS, DECISIONS = "options", "decisions"
"""Keys of the ConfigMap's data."""
LONGEST_OPTIONS = 65_536
"""Characters: some 700 groups of ``--nodes``. A ConfigMap holds 1 MiB, most of which is the status."""
MOST_DECISIONS = 20
LONGEST_DECISION = 300
_READABLE = 4 * LONGEST_OPTIONS
_ELSEWHERE: Final = ("priorities", "prices", "seed")
"""Of ``Choosing``: read from ConfigMaps of their own at every look."""

_adapter: TypeAdapter[AutoscalerOptions] = TypeAdapter(AutoscalerOptions)


@dataclass(frozen=True, slots=True)
class Made:
    """One decision of the past."""

    at: datetime
    text: str


def options_text(options: AutoscalerOptions) -> str:
    """Same options, same text; "" if it would be too long."""
    found = _adapter.dump_python(replace(options, discovery=replace(options.discovery, given={})), mode="json")
    for name in _ELSEWHERE:
        del found["growth"]["choosing"][name]
    found["discovery"]["given"] = [
        {"group": str(key), "min": bounds.min_size, "max": bounds.max_size}
        for key, bounds in sorted(options.discovery.given.items())
    ]
    text = json.dumps(found, sort_keys=True)
    return text if len(text) <= LONGEST_OPTIONS else ""


def read_options(text: str) -> AutoscalerOptions | None:
    """None for what can't be read: another version wrote it, or somebody else. Total over any text."""
    if not text or len(text) > _READABLE:
        return None
    try:
        found = json.loads(text)
        discovery = found["discovery"]
        given = {_key(each["group"]): Bounds(int(each["min"]), int(each["max"])) for each in discovery["given"]}
        options = _adapter.validate_python({**found, "discovery": {**discovery, "given": {}}})
        checked(options.growth.choosing.names)
        if not 0 < options.consolidation.least_gain <= 1:
            raise ValueError("consolidation.least_gain")
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError):
        return None
    return replace(options, discovery=Discovery(given, options.discovery.filters))


def _key(text: str) -> Key:
    namespace, _, name = text.partition("/")
    return Key(namespace, name)


def decisions_text(before: str, decision: Decision, now: datetime) -> str:
    """Those of ``before`` and what is decided now, the latest last; a repeated one keeps its time."""
    made = read_decisions(before)
    latest = made[-1].text if made else ""
    made += [
        Made(now, text)
        for text in (sentences[:LONGEST_DECISION] for sentences in _sentences(decision))
        if text != latest
    ]
    if not made:
        return ""
    return json.dumps([{"at": format_time(each.at), "text": each.text} for each in made[-MOST_DECISIONS:]])


def read_decisions(text: str) -> list[Made]:
    """Oldest first; what can't be read is left out. Total over any text."""
    try:
        found: Any = json.loads(text) if text and len(text) <= _READABLE else []
    except (ValueError, RecursionError):
        return []
    made = []
    for each in found if isinstance(found, list) else ():
        at = parse_time(each.get("at")) if isinstance(each, Mapping) else None
        sentence = each.get("text") if isinstance(each, Mapping) else None
        if at is not None and isinstance(sentence, str):
            made.append(Made(at, sentence[:LONGEST_DECISION]))
    return made[-MOST_DECISIONS:]


def _sentences(decision: Decision) -> Iterator[str]:
    """One sentence for a reconcile: a burst of groups is one decision."""
    parts = [f"{group}: {counted(nodes, 'Node')} more" for group, nodes in decision.scale_up.added.items()]
    if decision.consolidation.begins is not None:
        parts.append(decision.consolidation.why)
    parts += [victim.why for victim in decision.scale_down.victims]
    if decision.frozen:
        parts.append(f"nothing is scaled: {decision.frozen}")
    if parts:
        yield "; ".join(parts)

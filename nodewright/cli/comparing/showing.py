"""What differs, as a tree for people and as values for programs. Secrets are in neither."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from api.secrets import HIDDEN, is_secret_name, without_secrets
from controllers.kernel.refs import SECRET
from nodewright.cli.comparing.declaration import Declaration, Hidden
from nodewright.cli.comparing.differences import Difference, Field, Nothing
from nodewright.cli.comparing.sides import Side
from nodewright.cli.manifests.positions import write_path
from nodewright.reports.tree.branch import Branch, Mood

_LONGEST: Final = 200
"""Characters of one value that are shown to people."""


def as_tree(a: Side, b: Side, found: Sequence[Difference]) -> Branch:
    children = tuple(_branch(each) for each in found)
    count = f"{len(found)} object{'s differ' if len(found) != 1 else ' differs'}" if found else "nothing differs"
    return Branch(f"A {a.title}, B {b.title}", message=count, children=children)


def as_data(a: Side, b: Side, found: Sequence[Difference]) -> dict[str, Any]:
    """``change``: ``Changed``, ``OnlyInA`` or ``OnlyInB``. A field has ``a`` and ``b`` where that side has it."""
    return {
        "a": a.title,
        "b": b.title,
        "objects": [_object(each) for each in found],
        "leftOut": [*a.skipped, *b.skipped],
    }


def _branch(each: Difference) -> Branch:
    if each.a is None or each.b is None:
        only, side = (each.a, "A") if each.a is not None else (each.b, "B")
        assert only is not None, "a difference has an object"
        return Branch(only.title, Mood.BUSY, message=f"only in {side}")
    title = each.a.title if each.a.name == each.b.name else f"{each.a.title} and {each.b.title}"
    fields = tuple(Branch(write_path(field.path), message=_change(each.a, field)) for field in each.fields)
    return Branch(title, Mood.BUSY, message=f"{len(fields)} field{'s' if len(fields) != 1 else ''}", children=fields)


def _change(owner: Declaration, field: Field) -> str:
    a, b = shown(owner, field, field.a), shown(owner, field, field.b)
    if isinstance(field.a, Nothing) or isinstance(field.b, Nothing):
        return f"only in B: {_text(b)}" if isinstance(field.a, Nothing) else f"only in A: {_text(a)}"
    return f"{_text(a)} → {_text(b)}"


def _object(each: Difference) -> dict[str, Any]:
    named = {side: {"namespace": one.namespace, "name": one.name} for side, one in _sides(each)}
    one = each.a or each.b
    assert one is not None, "a difference has an object"
    change = "Changed" if each.a and each.b else "OnlyInA" if each.a else "OnlyInB"
    fields = [
        {"path": write_path(field.path)}
        | {
            side: shown(one, field, value)
            for side, value in (("a", field.a), ("b", field.b))
            if not isinstance(value, Nothing)
        }
        for field in each.fields
    ]
    return {"kind": one.kind, "group": one.group, "change": change, **named, "fields": fields}


def _sides(each: Difference) -> list[tuple[str, Declaration]]:
    return [(side, one) for side, one in (("a", each.a), ("b", each.b)) if one is not None]


def shown(owner: Declaration, field: Field, value: Any) -> Any:
    """``value`` without secrets: what a Secret holds, what stands under a telling name, and what looks like one."""
    if owner.kind == SECRET.name and not owner.group and field.path[:1] == ("data",):
        return HIDDEN
    return HIDDEN if any(is_secret_name(str(part)) for part in field.path) else _clean(value)


def _clean(value: Any) -> Any:
    if isinstance(value, Hidden):
        return HIDDEN
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {name: HIDDEN if is_secret_name(str(name)) else _clean(below) for name, below in value.items()}
    return [_clean(below) for below in value] if isinstance(value, list | tuple) else value


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"

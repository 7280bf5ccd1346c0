"""x-kubernetes-validations: CEL rules over an object and, for transition rules, over what it was before.

Follows apiextensions' schema/cel: a rule that does not mention oldSelf is let pass if its value did not change
(KEP-4008); a transition rule runs only where the old value can be found, that is not inside `set` and `atomic` lists.
There is no cost estimate: rules come with CustomResourceDefinitions, from whoever administers the control plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from nodewright.apiserver.validation.expressions import Expression, compile_expression
from nodewright.apiserver.validation.gotext import value_text
from nodewright.apiserver.validation.keyed_lists import correlate
from nodewright.apiserver.validation.nodes import Node
from nodewright.apiserver.values import Cause, Obj

_TRIVIAL: Final = "self == oldSelf"
_EVALUATION_ERRORS: Final = (KeyError, IndexError, TypeError, ValueError, ArithmeticError, RuntimeError)
MAX_MESSAGE: Final = 5120
"""Characters of a message that a messageExpression may give."""

NOT_CHECKED: Final = Cause(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One compiled rule. `expression` is None for `self == oldSelf`, which needs no interpreter."""

    text: str
    expression: Expression | None
    message: str
    message_expression: Expression | None
    reason: str
    field_path: str
    transition: bool
    optional_old: bool

    @property
    def name(self) -> str:
        """What errors of the rule's own evaluation call it."""
        return self.message or self.text


@dataclass(frozen=True, slots=True)
class _Spot:
    """A value and its old one; `same` says if the nearest place that has an old value did not change."""

    path: str
    value: Any
    old: Any
    known: bool
    same: bool


class Rules:
    """All rules of one schema. Compiling raises ValueError with the place of a rule that cannot be compiled."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._rules: dict[Node, tuple[Rule, ...]] = {}
        self._with_old: set[Node] = set()
        self._without_old: set[Node] = set()
        self._collect(root, "")

    def _collect(self, node: Node, path: str) -> None:
        """Compile the rules at and below a node, and note whether any of them needs an old value, or can do without."""
        rules = [_compile(raw, node, path) for raw in (*node.rules, *_under_all_of(node.raw))]
        self._rules[node] = tuple(rules)
        below = [child for _, child in _children(node) if child.has_rules]
        for name, child in _children(node):
            if child.has_rules:
                self._collect(child, f"{path}{name}")
        if any(rule.transition for rule in rules) or not self._with_old.isdisjoint(below):
            self._with_old.add(node)
        if any(not rule.transition or rule.optional_old for rule in rules) or not self._without_old.isdisjoint(below):
            self._without_old.add(node)

    def check(self, obj: Obj, old: Obj | None) -> list[Cause]:
        """Give the causes of all rules that fail, outermost first."""
        if not self._root.has_rules:
            return []
        return list(self._walk(self._root, _Spot("", obj, old, old is not None, old is not None and obj == old)))

    def _walk(self, node: Node, spot: _Spot) -> Iterator[Cause]:
        if spot.value is None or (spot.same and node not in self._with_old):
            return
        if not spot.known and node not in self._without_old:
            return
        for rule in self._rules[node]:
            yield from _evaluate(rule, node, spot)
        if isinstance(spot.value, dict):
            yield from self._walk_map(node, spot)
        elif isinstance(spot.value, list) and node.items is not None and node.items.has_rules:
            yield from self._walk_list(node, node.items, spot)

    def _walk_map(self, node: Node, spot: _Spot) -> Iterator[Cause]:
        old_map = spot.old if isinstance(spot.old, dict) else {}
        if node.additional is not None and node.additional.has_rules:
            for key, child in spot.value.items():
                if key not in node.properties:
                    yield from self._walk(node.additional, _next(spot, f"{spot.path}[{key}]", child, old_map.get(key)))
        for key, below in node.properties.items():
            if below.has_rules and key in spot.value:
                path = f"{spot.path}.{key}" if spot.path else key
                yield from self._walk(below, _next(spot, path, spot.value[key], old_map.get(key)))

    def _walk_list(self, node: Node, items: Node, spot: _Spot) -> Iterator[Cause]:
        old_items = correlate(node, spot.value, spot.old)
        for i, item in enumerate(spot.value):
            old = old_items[i] if old_items is not None else None
            yield from self._walk(items, _next(spot, f"{spot.path}[{i}]", item, old))


def _next(spot: _Spot, path: str, value: Any, old: Any) -> _Spot:
    if spot.known and old is not None:
        return _Spot(path, value, old, True, value is old or bool(value == old))
    return _Spot(path, value, None, False, spot.same)


def _children(node: Node) -> Iterator[tuple[str, Node]]:
    for key, child in node.properties.items():
        yield f".{key}", child
    if node.additional is not None:
        yield "[*]", node.additional
    if node.items is not None:
        yield "[]", node.items


def _under_all_of(raw: Obj) -> Iterator[Obj]:
    for branch in raw.get("allOf") or ():
        if isinstance(branch, dict):
            yield from branch.get("x-kubernetes-validations") or ()
            yield from _under_all_of(branch)


def _compile(raw: Any, node: Node, path: str) -> Rule:
    if not isinstance(raw, dict) or not str(raw.get("rule", "")).strip():
        raise ValueError(f"{path or 'schema'}: x-kubernetes-validations: rule is required")
    text = str(raw["rule"]).strip()
    try:
        expression = None if text == _TRIVIAL else compile_expression(text, node)
        wording = str(raw.get("messageExpression", "")).strip()
        message_expression = compile_expression(wording, node) if wording else None
    except ValueError as error:
        raise ValueError(f"{path or 'schema'}: x-kubernetes-validations: {error}") from error
    return Rule(
        text=text,
        expression=expression,
        message=str(raw.get("message", "")).strip(),
        message_expression=message_expression,
        reason=str(raw.get("reason") or "FieldValueInvalid"),
        field_path=str(raw.get("fieldPath", "")).strip().removeprefix("."),
        transition=expression is None or expression.uses_old,
        optional_old=bool(raw.get("optionalOldSelf")),
    )


def _evaluate(rule: Rule, node: Node, spot: _Spot) -> Iterator[Cause]:
    if rule.transition and spot.old is None and not rule.optional_old:
        return
    if not rule.transition and spot.same:
        return
    if rule.expression is None:
        holds = spot.value is spot.old or bool(spot.value == spot.old)
    else:
        try:
            holds = rule.expression.run(spot.value, spot.old, rule.optional_old) is True
        except _EVALUATION_ERRORS as error:
            kind = "object" if isinstance(spot.value, dict) else node.raw.get("type", "")
            message = f'Invalid value: "{kind}": {_reason_of(error)} evaluating rule: {rule.name}'
            yield Cause(spot.path or "<nil>", "FieldValueInvalid", message)
            return
    if not holds:
        yield _failure(rule, spot, _wording(rule, spot))


def _reason_of(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"no such key: {error.args[0]}"
    if isinstance(error, ZeroDivisionError):
        return "division by zero"
    return str(error)


def _wording(rule: Rule, spot: _Spot) -> str:
    if rule.message_expression is not None:
        try:
            message = rule.message_expression.run(spot.value, spot.old, rule.optional_old)
        except _EVALUATION_ERRORS:
            message = None
        if isinstance(message, str) and 0 < len(message.strip()) <= MAX_MESSAGE and "\n" not in message.strip():
            return message.strip()
    return rule.message or f"failed rule: {rule.text}"


def _failure(rule: Rule, spot: _Spot, detail: str) -> Cause:
    path = spot.path
    if rule.field_path:
        path = f"{path}.{rule.field_path}" if path and not rule.field_path.startswith("[") else path + rule.field_path
    shown = "" if isinstance(spot.value, (dict, list)) else f": {value_text(spot.value)}"
    match rule.reason:
        case "FieldValueForbidden":
            message = f"Forbidden: {detail}"
        case "FieldValueRequired":
            message = f"Required value: {detail}"
        case "FieldValueDuplicate":
            message = f"Duplicate value{shown}"
        case _:
            message = f"Invalid value{shown}: {detail}"
    return Cause(path or "<nil>", rule.reason, message)

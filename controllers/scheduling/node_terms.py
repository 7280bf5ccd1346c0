"""Node selectors as they stand in pods, volumes and storage classes, read into terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.selectors import Operator, Requirement
from controllers.scheduling.shapes import NodeTerm

_NO_VALUES = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_ONE_INTEGER = (Operator.GREATER, Operator.LESS)


def node_terms(selector: Mapping[str, Any] | None) -> tuple[NodeTerm, ...] | None:
    """A ``NodeSelector``; None for an absent one. A term that can't be read matches nothing, as in kube-scheduler."""
    if selector is None:
        return None
    return tuple(_term(term) for term in selector.get("nodeSelectorTerms") or ())


def topology_terms(terms: Any) -> tuple[NodeTerm, ...] | None:
    """A storage class' ``allowedTopologies``; None: everywhere."""
    if not terms:
        return None
    return tuple(
        NodeTerm(
            tuple(
                Requirement(str(each.get("key")), Operator.IN, tuple(sorted(map(str, each.get("values") or ()))))
                for each in term.get("matchLabelExpressions") or ()
            )
        )
        for term in terms
    )


def _term(term: Mapping[str, Any]) -> NodeTerm:
    labels = [_label(each) for each in term.get("matchExpressions") or ()]
    names = [_name(each) for each in term.get("matchFields") or ()]
    if None in labels or None in names:
        return NodeTerm()
    return NodeTerm(tuple(r for r in labels if r), tuple(r for r in names if r))


def _label(expression: Mapping[str, Any]) -> Requirement | None:
    try:
        operator = Operator(str(expression.get("operator")))
    except ValueError:
        return None
    values = tuple(sorted({str(value) for value in expression.get("values") or ()}))
    if bool(values) == (operator in _NO_VALUES):
        return None
    if operator in _ONE_INTEGER and (len(values) != 1 or not values[0].lstrip("+-").isdecimal()):
        return None
    return Requirement(str(expression.get("key")), operator, values)


def _name(expression: Mapping[str, Any]) -> Requirement | None:
    """Fields know In and NotIn with exactly one value; the only field is the name, any other is never equal."""
    operator, values = expression.get("operator"), [str(value) for value in expression.get("values") or ()]
    if operator not in (Operator.IN, Operator.NOT_IN) or len(values) != 1:
        return None
    return Requirement(str(expression.get("key")), Operator(operator), tuple(values))

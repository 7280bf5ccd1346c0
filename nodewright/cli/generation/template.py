"""A template: YAML documents in which ``${NAME}`` stands for a value and ``${NAME:=VALUE}`` for one with a default.

A document that names ``${INDEX}`` is written once for each control plane, with 1, 2, … in its place. Values are put in
as text, so they are held to characters that mean nothing in YAML: none can add a field or a document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nodewright.cli.manifests.documents import chunks

INDEX = "INDEX"
_PLACE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)(?::=([^}\n]*))?\}")
_OPEN = re.compile(r"\$\{[^\n]{0,40}")
_VALUE = re.compile(r"(?:[A-Za-z0-9/](?:[A-Za-z0-9._:/@+=~-]*[A-Za-z0-9._/@+=~-])?)?")
_LONGEST = 1024


class TemplateError(ValueError):
    """What is wrong with a template or with a value for it."""


@dataclass(frozen=True, slots=True)
class Variable:
    """``default`` None: a value has to be given."""

    name: str
    default: str | None


def variables(text: str) -> list[Variable]:
    """In the order in which they first stand in ``text``. Raises TemplateError for two defaults of one name."""
    found: dict[str, str | None] = {}
    for match in _PLACE.finditer(text):
        name, default = match[1], match[2]
        if name == INDEX:
            continue
        before = found.setdefault(name, default)
        if default is not None and before not in (None, default):
            raise TemplateError(f"${{{name}}} has two defaults: {before} and {default}")
        found[name] = before if default is None else default
    for match in _OPEN.finditer(text):
        if _PLACE.match(text, match.start()) is None:
            line = text.count("\n", 0, match.start()) + 1
            raise TemplateError(f"line {line}: {match[0][:20]}: write it as ${{NAME}} or ${{NAME:=DEFAULT}}")
    return [Variable(name, default) for name, default in found.items()]


def render(text: str, values: Mapping[str, str], control_planes: int) -> str:
    """The manifests. Raises TemplateError naming the variable."""
    known = {each.name: each.default for each in variables(text)}
    unknown = sorted(values.keys() - known.keys())
    if unknown:
        raise TemplateError(f"the template has no variable {', '.join(unknown)}; it has: {', '.join(known) or 'none'}")
    missing = [name for name, default in known.items() if default is None and name not in values]
    if missing:
        raise TemplateError(f"a value is needed for {', '.join(missing)}")
    chosen = {name: values.get(name, default or "") for name, default in known.items()}
    for name, value in values.items():
        _must_be_plain(name, value)
    return "".join(_documents(text, chosen, control_planes))


def _documents(text: str, chosen: Mapping[str, str], control_planes: int) -> Iterator[str]:
    first = True
    for chunk in chunks(text):
        repeated = f"${{{INDEX}}}" in chunk.text
        for number in range(1, control_planes + 1) if repeated else (0,):
            mark = chunk.mark if first or chunk.mark else "---\n"
            yield mark + _PLACE.sub(lambda m: str(number) if m[1] == INDEX else chosen[m[1]], chunk.text)  # noqa: B023
            first = False


def _must_be_plain(name: str, value: str) -> None:
    if len(value) > _LONGEST or _VALUE.fullmatch(value) is None:
        message = (
            f"the value of {name} may hold letters, digits and . _ : / @ + = ~ - alone, at most {_LONGEST} of them"
        )
        raise TemplateError(f"{message}; what needs more belongs into a template of your own (--from)")

"""Field tables for ``docs/api``: the part of a page between two markers is generated, the rest is written by people."""

from __future__ import annotations

import ast
import importlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from api.behaviour import Fields
from api.quantity import QUANTITY_PATTERN

BEGIN = "<!-- generated: fields -->"
END = "<!-- end of generated -->"

Schema = dict[str, Any]


def with_generated(page: Path, title: str, generated: str) -> str:
    """The page with its generated part renewed; a page that does not exist starts with a title only."""
    text = page.read_text() if page.exists() else f"# {title}\n\n{BEGIN}\n{END}\n"
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{page}: lacks the markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{generated}{END}{after}"


def tables(crd: Schema) -> str:
    """Columns, rules and fields of one kind as Markdown."""
    version = crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    lines = ["## Columns of `kubectl get`", "", "| Column | From | Meaning |", "|---|---|---|"]
    for column in version["additionalPrinterColumns"]:
        wide = " (with `-o wide`)" if column.get("priority") else ""
        lines.append(f"| {column['name'].upper()}{wide} | `{_cell(column['jsonPath'])}` | {column['description']} |")
    rules = list(_rules(schema, ""))
    if rules:
        lines += ["", "## Rules", "", "| Field | Refused with |", "|---|---|"]
        lines += [f"| `{path or '.'}` | {_cell(message)} |" for path, message in rules]
    for part in ("spec", "status", ""):
        rows = list(_part_rows(schema, part))
        if rows:
            title = f"Fields of `{part}`" if part else "Fields beside `spec` and `status`"
            lines += ["", f"## {title}", "", "| Field | Type | Default | Meaning |", "|---|---|---|---|"]
            lines += rows
    return "\n".join([*lines, ""])


def with_behaviours(page: str, fields: Fields) -> str:
    """The page with a table of what a change of each field does, at the end of its generated part."""
    lines = ["", "## What a change of `spec` does", ""]
    lines += ["| Field | A change of it in a template |", "|---|---|"]
    for name, one in fields.behaviours.items():
        lines.append(f"| `{name}` | {one.change} |")
    return page.replace(END, "\n".join([*lines, ""]) + END)


def _part_rows(schema: Schema, part: str) -> Iterator[str]:
    if part:
        yield from _rows(schema["properties"].get(part, {}), part)
        return
    known = ("apiVersion", "kind", "metadata", "spec", "status")
    rest = {name: child for name, child in schema["properties"].items() if name not in known}
    yield from _rows({"properties": rest, "required": schema.get("required", [])}, "")


def _rows(schema: Schema, path: str) -> Iterator[str]:
    required = schema.get("required", [])
    for name, child in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        default = f"`{json.dumps(child['default'])}`" if "default" in child else ""
        if name in required:
            default = "*required*"
        yield f"| `{here}` | {_type(child)} | {default} | {_cell(child.get('description', ''))} |"
        yield from _rows(child, here)
        yield from _rows(child.get("items", {}), f"{here}[]")


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if schema.get("pattern") == QUANTITY_PATTERN else "integer or percentage"
    if "enum" in schema:
        return " \\| ".join(schema["enum"])
    if "type" not in schema:
        return "string or object"
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    if schema["type"] == "object" and "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    return str({"date-time": "time"}.get(schema.get("format", ""), schema["type"]))


def _rules(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", []):
        yield f"{path}{rule.get('fieldPath', '')}".lstrip("."), rule["message"]
    for name, child in schema.get("properties", {}).items():
        yield from _rules(child, f"{path}.{name}")
        yield from _rules(child.get("items", {}), f"{path}.{name}[]")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def names_table(source: Path) -> str:
    """The constants of a module with their values and docstrings, headings taken from its ``# --- x ---`` comments."""
    text = source.read_text()
    headings = {
        number: line.strip("#- ").strip()
        for number, line in enumerate(text.splitlines(), start=1)
        if line.startswith("# ---")
    }
    lines: list[str] = []
    body = ast.parse(text).body
    values = _values(source.stem)
    previous = 0
    for node, after in itertools.pairwise(body):
        found = [title for number, title in headings.items() if previous < number <= node.lineno]
        if found:
            lines += ["", f"## {found[-1].capitalize()}", "", "| Name | Constant | Meaning |", "|---|---|---|"]
        previous = node.lineno
        if not lines or not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        value = values[node.target.id]
        if isinstance(value, str | int) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            lines.append(f"| `{value}` | `{node.target.id}` | {_cell(str(after.value.value))} |")
    return "\n".join([*lines[1:], ""])


def conditions_table(source: Path) -> str:
    """One table for each enumeration of condition types, from its docstrings."""
    lines: list[str] = []
    for node in ast.parse(source.read_text()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        lines += ["", f"## {str(ast.get_docstring(node)).splitlines()[0]}".rstrip("."), ""]
        lines += [f"| {'Reason' if node.name.endswith('Reason') else 'Type'} | Meaning |", "|---|---|"]
        lines += [f"| `{value}` | {_cell(meaning)} |" for value, meaning in _members(node)]
    return "\n".join([*lines[1:], ""])


def meanings(source: Path, enumeration: str) -> dict[str, str]:
    """By value, what the docstrings of an enumeration say of its members."""
    classes = (node for node in ast.parse(source.read_text()).body if isinstance(node, ast.ClassDef))
    return dict(_members(next(node for node in classes if node.name == enumeration)))


def _members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for member, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(member, ast.Assign):
            says = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            yield str(ast.literal_eval(member.value)), str(says)


def _values(module: str) -> dict[str, Any]:
    return vars(importlib.import_module(f"api.{module}"))

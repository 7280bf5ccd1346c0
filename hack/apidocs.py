"""Field tables for ``docs/api``: the part of a page between two markers is generated, the rest is written by people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGIN = "<!-- generated: fields -->"
END = "<!-- end of generated -->"

Schema = dict[str, Any]


def with_tables(page: Path, crd: Schema) -> str:
    """The page with its generated part renewed; a page that does not exist starts with a title only."""
    text = page.read_text() if page.exists() else f"# {crd['spec']['names']['kind']}\n\n{BEGIN}\n{END}\n"
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{page}: lacks the markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{tables(crd)}{END}{after}"


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
        return "integer or percentage"
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

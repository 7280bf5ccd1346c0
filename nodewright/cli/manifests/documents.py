"""Read manifests: YAML or JSON text to plain data, with the place of every field.

The text is cut at ``---`` lines first, as kubectl does, so that one broken document hides no error in the others.
Scalars resolve as in sigs.k8s.io/yaml, which kubectl uses: no dates and no base-60 numbers (``12:30`` stays text).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from api import yamltext
from nodewright.cli.manifests.positions import Path, Position

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64
MAX_VALUES = 500_000
"""Bounds of one document."""

_CUT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_BOUNDS = yamltext.Bounds(MAX_BYTES, MAX_DEPTH, MAX_VALUES, "kubernetes")
"""Without aliases, though kubectl takes them: a file that is passed to us is mostly somebody else's."""
_WRITE_OUT = "`yq 'explode(.)' FILE` does that"
_INT = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|(0|[1-9][0-9_]*))\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")


class _Dumper(yaml.SafeDumper):
    """Quotes every text that kubectl's YAML library, or another one, would take for something else."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def write(data: Any) -> str:
    """One document as YAML, fields in the order they have."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document. ``positions`` has each field's key (list items: the item), and () for the whole."""

    data: Any
    positions: Mapping[Path, Position]


@dataclass(frozen=True, slots=True)
class Broken:
    """Something about a text that keeps it from being read as asked."""

    position: Position
    message: str
    path: Path = ()


def read(text: str) -> Iterator[Document | Broken]:
    """Every document of ``text`` in order; what is wrong with one comes before it (empty documents are skipped)."""
    for chunk in chunks(text):
        yield from read_one(chunk.text, chunk.line)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The text of one document; ``line``: how many lines stand before it. ``mark``: the ``---`` that begins it."""

    mark: str
    text: str
    line: int


def chunks(text: str) -> Iterator[Chunk]:
    """``text`` in pieces, which put together are the whole again."""
    starts = [(0, 0)] + [(m.start(), m.end()) for m in _CUT.finditer(text)]
    for number, (start, body) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(text)
        yield Chunk(text[start:body], text[body:end], text.count("\n", 0, start))


def read_one(chunk: str, line_offset: int) -> Iterator[Document | Broken]:
    if not chunk.strip():
        return
    if chunk.lstrip().startswith(("{", "[")):
        # JSON may be indented by tabs, which YAML forbids; inside its strings a raw tab can't stand.
        chunk = chunk.replace("\t", " ")
    try:
        node = yamltext.compose(chunk, _BOUNDS)
    except yamltext.TextError as error:
        yield _syntax_error(error, chunk, line_offset)
        return
    if node is None:
        return
    reader = _Reader(line_offset)
    try:
        data = reader.value(node, ())
    except _Refused as refused:
        yield refused.broken
        return
    yield from reader.broken
    if data is not None:
        yield Document(data, reader.positions)


def _syntax_error(error: yamltext.TextError, chunk: str, line_offset: int) -> Broken:
    if not error.line:
        return Broken(Position(line_offset + 1, 1), f"not valid YAML: {error.problem}")
    lines = chunk.splitlines()
    before = lines[error.line - 1][: error.column] if error.line <= len(lines) else ""
    hint = " (a tab: indent with spaces)" if "\t" in before else ""
    known = error.problem == yamltext.NO_ALIASES
    message = f"{error.problem}: {_WRITE_OUT}" if known else f"not valid YAML: {error.problem}{hint}"
    return Broken(Position(line_offset + error.line, error.column), message)


class _Refused(Exception):
    def __init__(self, broken: Broken) -> None:
        super().__init__(broken.message)
        self.broken = broken


class _Reader:
    """Turns composed nodes into data, noting where each stands."""

    def __init__(self, line_offset: int) -> None:
        self.positions: dict[Path, Position] = {}
        self.broken: list[Broken] = []
        self._offset = line_offset

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.positions.setdefault(path, self._at(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                message = f"{yamltext.NO_MERGE_KEYS}: {_WRITE_OUT}"
                raise _Refused(Broken(self._at(key_node), message, path))
            if not isinstance(key_node, yaml.ScalarNode):
                self.broken.append(Broken(self._at(key_node), "a key must be text", path))
                continue
            key = str(key_node.value)
            here = (*path, key)
            if key in own:
                first = self.positions[here].line
                self.broken.append(Broken(self._at(key_node), f"key is given twice (first in line {first})", here))
                continue
            self.positions[here] = self._at(key_node)
            own[key] = self.value(value_node, here)
        return own

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        try:
            return yamltext.scalar(node)
        except yamltext.TextError as error:
            self.broken.append(Broken(self._at(node), error.problem, path))
            return None

    def _at(self, node: yaml.Node) -> Position:
        return Position(self._offset + node.start_mark.line + 1, node.start_mark.column + 1)

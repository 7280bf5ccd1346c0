"""Convert the objects in a text and leave everything else of it as it was written.

Mostly one key gets another name; then only that key is touched and comments stay. Where that can't be enough (text that
becomes an object), the document is written anew. What can't be converted is passed on unchanged and reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from api import names
from api.conversion import OF_REQUESTS, Field, convert, convert_request
from api.providerconfig import FIELDS, ProviderConfigError, find, holder
from api.provisioning_names import PROVISIONING_GROUP
from nodewright.cli.manifests.checks import Subject, subjects
from nodewright.cli.manifests.documents import Broken, Chunk, Document, chunks, read_one, write
from nodewright.cli.manifests.findings import Finding
from nodewright.cli.manifests.positions import Path, Position, nearest, read_path, write_path

_KEY = re.compile(r"""(["']?)(providerConfig|providerSpec|provisioningClass|Parameters)(["']?)""")
_UNTYPED = "names no config type (apiVersion and kind): Nodewright finds a provider by them"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """``faults``: what could not be converted; ``remarks``: what is converted and yet wants a look."""

    text: str
    changed: int
    faults: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()


def _finding(file: str, broken: Broken) -> Finding:
    return Finding(file, broken.position, broken.message, path=write_path(broken.path))


def rewrite(file: str, text: str, to: Field) -> Rewritten:
    """``text`` with the configuration of every object of our group in the field ``to``."""
    written: list[str] = []
    changed = 0
    faults: list[Finding] = []
    remarks: list[Finding] = []
    for chunk in chunks(text):
        parts = list(read_one(chunk.text, chunk.line))
        faults += [_finding(file, part) for part in parts if isinstance(part, Broken)]
        document = parts[0] if len(parts) == 1 else None
        if not isinstance(document, Document):
            written.append(chunk.mark + chunk.text)
            continue
        work = _Work(file, document, to)
        written.append(chunk.mark + (work.text(chunk) if work.run() else chunk.text))
        changed += work.changed
        faults += work.faults
        remarks += work.remarks
    return Rewritten("".join(written), changed, tuple(faults), tuple(remarks))


class _Work:
    """One document."""

    def __init__(self, file: str, document: Document, to: Field) -> None:
        self.moved: list[Path] = []
        """Paths of the fields that have another name, or other content, now."""
        self.changed = 0
        """Objects."""
        self.faults: list[Finding] = []
        self.remarks: list[Finding] = []
        self._file = file
        self._document = document
        self._to = to
        self._result: Any = document.data

    def run(self) -> bool:
        """Whether anything changes."""
        for subject in subjects(self._document.data):
            group = str(subject.data.get("apiVersion", "")).partition("/")[0]
            if group == names.GROUP:
                self._convert(subject)
            elif group == PROVISIONING_GROUP and subject.kind == "ProvisioningRequest":
                self._convert_request(subject)
        return bool(self.moved)

    def text(self, chunk: Chunk) -> str:
        """The new text: keys renamed where they stand if that gives the right data, else written anew."""
        renamed = self._renamed(chunk)
        again = list(read_one(renamed, chunk.line))
        if len(again) == 1 and isinstance(again[0], Document) and again[0].data == self._result:
            return renamed
        if chunk.text.lstrip().startswith("{"):
            return json.dumps(self._result, indent=2, ensure_ascii=False) + "\n"
        return ("\n" if chunk.mark else "") + write(self._result)

    def _convert(self, subject: Subject) -> None:
        try:
            converted = convert(subject.data, self._to)
            config, where = find(converted)
            _, stood = find(subject.data)
        except ProviderConfigError as fault:
            if subject.kind in {"Machine", "MachineSet", "MachineDeployment", "MachineClass", "Cluster"}:
                self.faults.append(self._finding(subject, fault.field, fault.message))
            return
        if config is not None and config.value is not None and not (config.api_version and config.kind):
            self.remarks.append(self._finding(subject, where, _UNTYPED, stood))
        if converted is subject.data:
            return
        held_by, path = holder(subject.data)
        old = next(name for name in FIELDS if held_by.get(name))
        self.moved.append((*subject.root, *read_path(path), old))
        self.changed += 1
        self._result = _replaced(self._result, subject.root, converted)

    def _convert_request(self, subject: Subject) -> None:
        converted = convert_request(subject.data)
        if converted is not subject.data:
            spec = subject.data["spec"]
            self.moved += [(*subject.root, "spec", name) for name in OF_REQUESTS if name in spec]
            self.changed += 1
            self._result = _replaced(self._result, subject.root, converted)

    def _finding(self, subject: Subject, path: str, message: str, stood: str = "") -> Finding:
        """``stood``: where in the document it is, if the field has another name there."""
        place = nearest(self._document.positions, (*subject.root, *read_path(stood or path))) or Position(1, 1)
        return Finding(self._file, place, message, subject.kind, subject.name, path)

    def _renamed(self, chunk: Chunk) -> str:
        lines = chunk.text.splitlines(keepends=True)
        places = [self._document.positions[path] for path in self.moved if path in self._document.positions]
        for place in sorted(places, key=lambda p: (p.line, p.column), reverse=True):
            row, column = place.line - chunk.line - 1, place.column - 1
            if row < len(lines) and (found := _KEY.match(lines[row], column)):
                key = f"{found[1]}{OF_REQUESTS.get(found[2], self._to)}{found[3]}"
                lines[row] = lines[row][:column] + key + lines[row][found.end() :]
        return "".join(lines)


def _replaced(data: Any, root: Path, obj: Mapping[str, Any]) -> Any:
    """``data`` with ``obj`` at ``root``: the document itself, or an item of a List."""
    if not root:
        return obj
    items = list(data["items"])
    items[int(root[1])] = obj
    return {**data, "items": items}


def joined(texts: list[str]) -> Iterator[str]:
    """Several files as one stream of documents."""
    before = ""
    for text in texts:
        if before.strip() and not text.startswith("---"):
            yield "---\n" if before.endswith("\n") else "\n---\n"
        elif before and not before.endswith("\n"):
            yield "\n"
        yield text
        before = text

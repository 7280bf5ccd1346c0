"""Everything that can be found wrong with one document without asking anybody.

The order is that of the API server: the shape of the document, unknown fields, schema and CEL rules with the defaults
filled in, then what no schema can say (``api.validate``), then the provider's own JSON Schema for its configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Protocol

from api import names
from api.addons import ADDONS_IN_FILES_ONLY
from api.misspelt import levels, near_misses
from api.providerconfig import REQUIRED, ProviderConfigError, find, missing
from api.validate import validate
from controllers.bootstrap import sizes
from nodewright.cli.manifests.documents import Document
from nodewright.cli.manifests.findings import Finding
from nodewright.cli.manifests.positions import Path, nearest, read_path
from nodewright.cli.manifests.served import kinds, schema_of
from providers.base.registry import Registry

_NOT_CHECKED = "correct the existing errors to complete validation"
_NAMES_ITS_FIELD = re.compile(r"Invalid value: (?:\S+: )?(metadata\.\w+) ")
FOREIGN_GROUPS = {names.CAPI_GROUP: "that is Cluster API's group; Nodewright's is cluster.k8s.io/v1alpha1"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong at ``path`` (written as Kubernetes does) of one object."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Subject:
    """One object to check; ``root`` is its place in the document (items of a List lie deeper)."""

    data: Mapping[str, Any]
    root: Path = ()

    @property
    def kind(self) -> str:
        return str(self.data.get("kind") or "")

    @property
    def name(self) -> str:
        meta = self.data.get("metadata")
        return str(meta.get("name") or meta.get("generateName") or "") if isinstance(meta, Mapping) else ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What must be unique: apiVersion, kind, namespace, name."""
        meta = self.data.get("metadata")
        namespace = meta.get("namespace") if isinstance(meta, Mapping) else None
        return str(self.data.get("apiVersion")), self.kind, str(namespace or "default"), self.name


class _Shape(Protocol):
    def prune(self, obj: dict[str, Any]) -> tuple[dict[str, Any], Iterable[str]]: ...
    def default(self, obj: dict[str, Any]) -> dict[str, Any]: ...
    def validate(self, obj: dict[str, Any], old: dict[str, Any] | None) -> Iterable[Any]: ...


class Checker:
    """Checks documents; remembers names, so that an object that is given twice is found."""

    def __init__(self, registry: Registry | None = None) -> None:
        self._registry = registry or Registry.installed()
        self._places: dict[tuple[str, str, str, str], str] = {}
        self.checked = 0
        self.foreign = 0
        """Objects of kinds that are not ours: only their frame was looked at."""

    def check(self, file: str, document: Document) -> list[Finding]:
        """All faults of one document, each with its place."""
        found: list[Finding] = []
        for subject in subjects(document.data):
            self.checked += 1
            for fault in self._faults(subject, file, document):
                position = nearest(document.positions, (*subject.root, *read_path(fault.path)))
                assert position is not None, "a document always has a place"
                found.append(Finding(file, position, fault.message, subject.kind, subject.name, fault.path))
        return found

    def _faults(self, subject: Subject, file: str, document: Document) -> Iterator[Fault]:
        frame = list(_frame(subject))
        yield from frame
        if frame:
            return
        yield from self._given_twice(subject, file, document)
        group, _, version = str(subject.data["apiVersion"]).rpartition("/")
        if group in FOREIGN_GROUPS:
            yield Fault("apiVersion", FOREIGN_GROUPS[group])
            return
        if group != names.GROUP:
            if schema_of(group, version, subject.kind) is None:
                self.foreign += 1
            else:
                yield from by_schema(subject.data, group, version)
            return
        if schema_of(group, version, subject.kind) is None:
            yield _unknown_kind(group, version, subject.kind)
            return
        seen: set[str] = set()
        for fault in by_schema(subject.data, group, version):
            if ADDONS_IN_FILES_ONLY in fault.message:  # this is a file
                continue
            seen.add(fault.path)
            yield fault
        yield from (Fault(f.path, f.message) for f in validate(subject.data) if f.path not in seen)
        yield from (f for f in self._provider_config(subject) if f.path not in seen)

    def _given_twice(self, subject: Subject, file: str, document: Document) -> Iterator[Fault]:
        position = nearest(document.positions, subject.root)
        here = f"{file}:{position.line if position else 1}"
        first = self._places.setdefault(subject.identity, here)
        if first != here and subject.name:
            yield Fault("metadata.name", f"is given twice (first at {first}); the later one would overwrite the first")

    def _provider_config(self, subject: Subject) -> Iterator[Fault]:
        try:
            config, path = find(subject.data)
        except ProviderConfigError:
            return  # api.validate has said so, with the field
        if where := missing(subject.data, config):
            yield Fault(where, REQUIRED)
        if config is None or config.value is None or subject.kind == "Cluster":
            return
        for problem in self._registry.problems(config.value):
            yield Fault(f"{path}.{problem.path}" if problem.path else path, problem.message)
        if config.api_version and config.kind and (found := self._registry.find(config.api_version, config.kind)):
            too_large = sizes.faults(subject.data, config.value, found.registration)
            yield from (Fault(fault.path, fault.message) for fault in too_large)


def subjects(data: Any) -> Iterator[Subject]:
    """The objects of a document: itself, or the items of a List."""
    if isinstance(data, Mapping) and str(data.get("kind", "")).endswith("List") and isinstance(data.get("items"), list):
        for index, item in enumerate(data["items"]):
            yield Subject(item if isinstance(item, Mapping) else {}, ("items", index))
        return
    yield Subject(data if isinstance(data, Mapping) else {})


def by_schema(obj: Mapping[str, Any], group: str, version: str) -> Iterator[Fault]:
    """What the API server would refuse by the CRD of ``obj``, unknown fields included."""
    shape = _shape(group, version, str(obj["kind"]))
    pruned, unknown = shape.prune(dict(obj))
    for path in unknown:
        yield Fault(path, "is not a known field" + _did_you_mean(group, version, str(obj["kind"]), path))
    for cause in shape.validate(shape.default(pruned), None):
        if not cause.message.endswith(_NOT_CHECKED):
            yield _as_fault(cause.field, cause.message)
    yield from _typing_errors(obj, group, version)


@cache
def _shape(group: str, version: str, kind: str) -> _Shape:
    from nodewright.apiserver.validation import compile_schema  # noqa: PLC0415  (needed for our own kinds only)

    found = schema_of(group, version, kind)
    assert found is not None, f"{kind} has a CRD"
    return compile_schema(found)


def _frame(subject: Subject) -> Iterator[Fault]:
    if not subject.data:
        yield Fault("", "is not a Kubernetes object: a mapping with apiVersion, kind and metadata is needed")
        return
    for field in ("apiVersion", "kind"):
        value = subject.data.get(field)
        if not isinstance(value, str) or not value:
            yield Fault(field, "is required" if value is None else f"must be text, is {value!r}")
    meta = subject.data.get("metadata")
    if meta is not None and not isinstance(meta, Mapping):
        yield Fault("metadata", "must be a mapping")
    elif not subject.name:
        yield Fault("metadata.name", "is required")


def _unknown_kind(group: str, version: str, kind: str) -> Fault:
    known = kinds(group)
    if kind in known:
        return Fault(
            "apiVersion", f"{group}/{version} is not served, only {', '.join(f'{group}/{v}' for v in known[kind])}"
        )
    near = get_close_matches(kind, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    return Fault("kind", f"{kind!r} is not a kind of {group}; {hint}")


def _typing_errors(obj: Mapping[str, Any], group: str, version: str) -> Iterator[Fault]:
    """Fields that the schema lets pass as unknown but that look very much like a known one."""
    for miss in near_misses(obj, tuple(levels(schema_of(group, version, str(obj["kind"])) or {}))):
        yield Fault(miss.path, f"is not a known field; did you mean {miss.known}?")


def _did_you_mean(group: str, version: str, kind: str, path: str) -> str:
    parts = read_path(path)
    node: Any = schema_of(group, version, kind) or {}
    for part in parts[:-1]:
        node = (node.get("items") if isinstance(part, int) else (node.get("properties") or {}).get(part)) or {}
    near = get_close_matches(str(parts[-1]), node.get("properties") or {}, n=1) if parts else []
    return f"; did you mean {near[0]}?" if near else ""


def _as_fault(field: str, message: str) -> Fault:
    """The API server repeats the path inside its messages; here it stands before them already.

    A rule on the whole object (CEL sees ``metadata.name`` only there) names its field in the message.
    """
    path = "" if field == "<nil>" else field
    if not path and (found := _NAMES_ITS_FIELD.match(message)):
        path = found[1]
    return Fault(path, message.replace(f"{path} in body ", "") if path else message)


def with_defaults(data: Any) -> Iterator[dict[str, Any]]:
    """The objects of our group in a document that has no fault, as the API server would store them."""
    for subject in subjects(data):
        if str(subject.data.get("apiVersion", "")).rpartition("/")[0] == names.GROUP:
            yield defaulted(subject.data)


def defaulted(obj: Mapping[str, Any]) -> dict[str, Any]:
    """An object with the defaults of its schema; one of a kind that is not ours as it is."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    if schema_of(group, version, str(obj.get("kind"))) is None:
        return dict(obj)
    return _shape(group, version, str(obj["kind"])).default(dict(obj))

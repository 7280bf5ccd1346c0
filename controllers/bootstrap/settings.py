"""``spec.bootstrap`` of a Cluster and of a Machine → what counts for the Machine's host, and what is wrong with it.

A Machine's fields count more than those of its Cluster:

- maps merge by key (``sysctls``, ``kubeletConfiguration`` at every level, ``containerd.registries`` by registry);
- lists and single values replace; so do a repository, an archive and a registry, whose fields belong together;
- ``null`` is as if the field were not there.

``source`` is the Machine's, else what the Machine gives (``packages`` or ``archives``), else the same of the Cluster,
else Image. So a Cluster may give packages and one pool archives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, Literal, cast, get_args

from pydantic import ValidationError

from api import bootstraprules
from api.bootstrap import BootstrapSpec
from api.durations import parse_duration
from api.faults import FieldError, child, text_of
from api.visible import visible
from controllers.bootstrap.refusal import Refusal

PATH: Final = "spec.bootstrap"
Source = Literal["Image", "Packages", "Archives"]
_ATOMIC: Final = frozenset(
    {
        ("packages", "repository"), ("packages", "runtimeRepository"), ("archives", "kubernetes"),
        ("archives", "containerd"), ("archives", "runc"), ("archives", "cniPlugins"),
    }
)  # fmt: skip
"""Objects that replace as a whole: an address of one with the key or checksum of another would never fit."""
JOIN_TIMEOUT: Final = timedelta(minutes=20)
"""What a host may take to join where nobody says otherwise."""
_DEEPEST: Final = 32
_MOST_FAULTS: Final = 16
_KEPT: Final = 256
"""Settings that are remembered: one for each template, as a rule."""
_METADATA_SERVICE: Final = "169.254.169.254"
BootstrapSpec.model_rebuild()  # takes longer than many reconciles: not when the first Machine comes


@dataclass(frozen=True, slots=True)
class Settings:
    """What counts for one host. ``spec`` holds what could be read; ``faults`` names what could not, or may not be.

    ``no_proxy``: ranges and DNS domain of the Cluster, which no proxy may get. ``source`` is never "".
    """

    spec: BootstrapSpec = field(default_factory=BootstrapSpec)
    source: Source = "Image"
    no_proxy: tuple[str, ...] = ()
    faults: tuple[Refusal, ...] = ()

    @property
    def endpoint(self) -> str:
        """``spec.endpoint``, "" where the Cluster's own counts."""
        return self.spec.endpoint or ""

    @property
    def join_timeout(self) -> timedelta:
        """How long a host may take to join. Total: what can't be read is among the faults."""
        try:
            return parse_duration(self.spec.join_timeout) if self.spec.join_timeout else JOIN_TIMEOUT
        except ValueError:
            return JOIN_TIMEOUT


def is_asked_for(cluster_spec: object, machine_spec: object) -> bool:
    """Whether hosts are to join by themselves: ``spec.bootstrap`` is there on either object, be it empty."""
    return any(
        isinstance(spec, Mapping) and isinstance(spec.get("bootstrap"), Mapping)
        for spec in (cluster_spec, machine_spec)
    )


def effective(cluster_spec: object, machine_spec: object) -> Settings:
    """Settings of a Machine's host. Total: what can't be read is left out of ``spec`` and named in ``faults``.

    ``cluster_spec`` {} for a Machine of no Cluster. Equal specs give the same object, for as long as it is kept: what
    has not changed is not validated again, and Machines of one template share it.
    """
    shared = cluster_spec if isinstance(cluster_spec, Mapping) else {}
    own = machine_spec if isinstance(machine_spec, Mapping) else {}
    return _effective(_Specs.of(shared, own))


@dataclass(frozen=True, slots=True)
class _Specs:
    """All of both specs that settings are made of. Equal if their texts are: ``repr`` tells True from 1 and "1"."""

    text: str
    cluster: Mapping[str, Any] = field(compare=False)
    machine: Mapping[str, Any] = field(compare=False)

    @classmethod
    def of(cls, shared: Mapping[str, Any], own: Mapping[str, Any]) -> _Specs:
        cluster = {name: shared.get(name) for name in ("bootstrap", "clusterNetwork")}
        machine = {"bootstrap": own.get("bootstrap")}
        return cls(repr((cluster, machine)), cluster, machine)


@lru_cache(maxsize=_KEPT)
def _effective(specs: _Specs) -> Settings:
    cluster_spec, machine_spec = specs.cluster, specs.machine
    own, shared = child(machine_spec, "bootstrap"), child(cluster_spec, "bootstrap")
    merged = _merge(shared, own, ())
    faults = [
        Refusal(PATH, f"must be an object{_of(origin)}")
        for spec, origin in ((machine_spec, "Machine"), (cluster_spec, "Cluster"))
        if spec.get("bootstrap") is not None and not isinstance(spec.get("bootstrap"), Mapping)
    ]
    unresolved = any(_both(spec) for spec in ((own,) if _source(own) or _both(own) else (shared,)))
    source = _source(own) or _source(shared) or "Image"
    if fault := bootstraprules.size_fault(merged, PATH):
        return Settings(faults=(Refusal(fault.path, fault.message),))
    parsed, unread = _parse(merged)
    rules = bootstraprules.bootstrap({"bootstrap": merged if unresolved else {**merged, "source": source}}, "spec")
    found = [*unread, *(each for each in rules if not any(each.path.startswith(one.path) for one in unread))]
    faults += [Refusal(each.path, each.message + _of(_origin(each.path, own, shared))) for each in found]
    if source == "Archives" and not parsed.archives and not faults:
        faults.append(Refusal(f"{PATH}.archives", f"is required: {PATH}.source is Archives"))
    return Settings(parsed, source, _no_proxy(cluster_spec), tuple(faults[:_MOST_FAULTS]))


def problems(found: Settings | Mapping[str, Any], path: str = "spec") -> tuple[Refusal, ...]:
    """What is wrong with settings, or with the ``bootstrap`` of the spec of one object at ``path``; () if nothing is.

    For a single object only faults that it has alone: the other half may be in a Cluster that comes later.
    """
    if isinstance(found, Settings):
        return found.faults
    given = found.get("bootstrap")
    unread: list[FieldError] = []
    if isinstance(given, Mapping) and not bootstraprules.size_fault(given, ""):
        _, unread = _parse(given)
    unread = [FieldError(path + each.path.removeprefix("spec"), each.message) for each in unread]
    rules = [each for each in bootstraprules.bootstrap(found, path) if each.path not in {one.path for one in unread}]
    return tuple(Refusal(each.path, each.message) for each in (*unread, *rules))[:_MOST_FAULTS]


def _merge(below: Mapping[str, Any], above: Mapping[str, Any], at: tuple[str, ...]) -> dict[str, Any]:
    merged = {key: value for key, value in below.items() if value is not None}
    for key, value in above.items():
        if value is None:
            continue
        place, under = (*at, key), merged.get(key)
        atomic = place in _ATOMIC or (len(place) == 3 and place[:2] == ("containerd", "registries"))
        if isinstance(value, Mapping) and isinstance(under, Mapping) and not atomic and len(place) < _DEEPEST:
            merged[key] = _merge(under, value, place)
        else:
            merged[key] = value
    return merged


def _source(spec: Mapping[str, Any]) -> Source | None:
    for name in get_args(Source):
        if spec.get("source") == name:
            return cast(Source, name)
    if _both(spec):
        return None
    return "Packages" if spec.get("packages") else "Archives" if spec.get("archives") else None


def _both(spec: Mapping[str, Any]) -> bool:
    """Whether it gives packages and archives and does not say which of them counts."""
    return bool(spec.get("packages") and spec.get("archives") and not spec.get("source"))


def _parse(merged: Mapping[str, Any]) -> tuple[BootstrapSpec, list[FieldError]]:
    """What can be read, field by field of the first level, and why the rest can't."""
    try:
        return BootstrapSpec.model_validate(dict(merged)), []
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    wrong = {str(each["loc"][0]) if each["loc"] else "" for each in found}
    rest = {key: value for key, value in merged.items() if key not in wrong}
    faults = [FieldError(PATH + _path(each["loc"]), each["msg"]) for each in found[:_MOST_FAULTS]]
    try:
        return BootstrapSpec.model_validate(rest), faults
    except ValidationError:
        return BootstrapSpec(), faults


def _path(places: tuple[int | str, ...]) -> str:
    text, before = "", ""
    for place in places:
        by_key = isinstance(place, int) or before in ("sysctls", "registries")
        text += f"[{visible(str(place)[:64])}]" if by_key else f".{visible(str(place)[:64])}"
        before = str(place)
    return text


def _origin(path: str, own: Mapping[str, Any], shared: Mapping[str, Any]) -> str:
    name = path.removeprefix(f"{PATH}.").partition(".")[0].partition("[")[0]
    return "Cluster" if own.get(name) is None and shared.get(name) is not None else "Machine"


def _of(origin: str) -> str:
    return " (of the Cluster)" if origin == "Cluster" else ""


def _no_proxy(cluster_spec: Mapping[str, Any]) -> tuple[str, ...]:
    network = child(cluster_spec, "clusterNetwork")
    blocks = []
    for part in ("pods", "services"):
        found = child(network, part).get("cidrBlocks")
        blocks += [each for each in (found if isinstance(found, list) else ()) if isinstance(each, str)]
    domain = text_of(network, "serviceDomain") or text_of(network, "dnsDomain") or "cluster.local"
    return ("localhost", "127.0.0.1", "::1", _METADATA_SERVICE, *blocks[:32], ".svc", f".{domain}")

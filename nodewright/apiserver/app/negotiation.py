"""In which shape does the client want its answer?"""

from __future__ import annotations

from dataclasses import dataclass

from api.remembered import remembered
from nodewright.apiserver.values import ApiError

JSON = "application/json"
YAML = "application/yaml"
_JSON_TYPES = frozenset({JSON, "application/*", "*/*"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """`as_kind` is "" for the object itself, else e.g. "Table"; `group` and `version` are those of that kind."""

    media_type: str = JSON
    as_kind: str = ""
    group: str = ""
    version: str = ""

    @property
    def content_type(self) -> str:
        """Give the Content-Type of such an answer; kubectl compares the parameters of discovery's literally."""
        if self.as_kind == "APIGroupDiscoveryList":
            return f"{self.media_type};g={self.group};v={self.version};as={self.as_kind}"
        return self.media_type


PLAIN = Wanted()

_META = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_OBJECT_SHAPES = frozenset(("meta.k8s.io", version, kind) for version in ("v1", "v1beta1") for kind in _META) | {
    ("", "", "")
}
_DISCOVERY_SHAPES = frozenset(
    ("apidiscovery.k8s.io", version, "APIGroupDiscoveryList") for version in ("v2", "v2beta1")
) | {("", "", "")}


@remembered(256)
def wanted_object(accept: str) -> Wanted:
    """Choose the shape of an object or list from an Accept header. Raises ApiError 406."""
    return _choose(accept, _OBJECT_SHAPES)


@remembered(64)
def wanted_discovery(accept: str) -> Wanted:
    """Choose between the aggregated and the plain discovery documents. Raises ApiError 406."""
    return _choose(accept, _DISCOVERY_SHAPES)


def _choose(accept: str, shapes: frozenset[tuple[str, str, str]]) -> Wanted:
    """Take the first acceptable clause, as kube-apiserver does for clauses of equal weight; others come by weight."""
    if not accept:
        return PLAIN
    clauses = sorted((_clause(text) for text in accept.split(",")), key=lambda c: -c[0])
    for _, wanted in clauses:
        media_type = JSON if wanted.media_type in _JSON_TYPES else wanted.media_type
        if media_type in (JSON, YAML) and (wanted.group, wanted.version, wanted.as_kind) in shapes:
            return Wanted(media_type, wanted.as_kind, wanted.group, wanted.version)
    raise ApiError.not_acceptable(f"only the following media types are accepted: {JSON}, {YAML}")


def _clause(text: str) -> tuple[float, Wanted]:
    media_type, *parameters = [part.strip() for part in text.split(";")]
    values = dict(p.split("=", 1) for p in parameters if "=" in p)
    try:
        weight = float(values.get("q", "1"))
    except ValueError:
        weight = 0.0
    return weight, Wanted(media_type.lower(), values.get("as", ""), values.get("g", ""), values.get("v", ""))

"""Rules of ``spec.remediationTemplate`` of a MachineHealthCheck: one place for CRD, webhook, ``validate``, controller.

Its parts become the path of requests with the controllers' rights, so each has the form that API servers demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

TEMPLATE_SUFFIX: Final = "Template"
"""End of the kind of a template; what comes before it is the kind of the object (CAPI)."""
GROUP_PATTERN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+"
API_VERSION_PATTERN: Final = rf"^{GROUP_PATTERN}/v[0-9]+((alpha|beta)[0-9]+)?$"
"""A group with a dot: the core group and those of Kubernetes' own workloads hold no templates."""
KIND_PATTERN: Final = r"^[A-Z][A-Za-z0-9]*Template$"
NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_FIELDS = (
    ("apiVersion", API_VERSION_PATTERN, 317, "a group and a version, like remedy.example.com/v1"),
    ("kind", KIND_PATTERN, 63, "letters and digits, and must end with Template after the kind of the object"),
    ("name", NAME_PATTERN, 253, "the name of an object: lower case letters, digits, '-' and '.'"),
)
_GROUP = re.compile(rf"{GROUP_PATTERN}\Z")


@dataclass(frozen=True, slots=True, order=True)
class TemplateKind:
    """A kind of templates that the administrator allows, in any version."""

    kind: str
    group: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}"


def template_kind(text: str) -> TemplateKind:
    """From ``KIND.GROUP``, as ``RebootTemplate.remedy.example.com``. Raises ValueError."""
    kind, _, group = text.strip().partition(".")
    if not re.match(KIND_PATTERN, kind) or not _GROUP.match(group):
        raise ValueError(f"{text!r} is not a kind of templates like RebootTemplate.remedy.example.com")
    return TemplateKind(kind, group)


def kind_of_template(template: Mapping[str, Any]) -> TemplateKind:
    """The parsed template; it has no faults."""
    return TemplateKind(template["kind"], template["apiVersion"].partition("/")[0])


def template_faults(template: object, namespace: str) -> Iterator[tuple[str, str]]:
    """(field, why) of all that is wrong; ``namespace`` is the check's own, "" if that is not known."""
    if not isinstance(template, Mapping):
        yield "", "must be an object"
        return
    for field, pattern, longest, meaning in _FIELDS:
        value = template.get(field)
        if not isinstance(value, str) or not value:
            yield field, "must be given"
        elif len(value) > longest or "\n" in value or not re.match(pattern, value):
            yield field, f"{value[:80]!a} is not {meaning}"
    asked = template.get("namespace")
    if asked and namespace and asked != namespace:
        yield "namespace", f"{str(asked)[:80]!a} is not the check's own namespace; leave it out"

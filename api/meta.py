"""Types of ``meta.k8s.io`` and ``core/v1`` that our kinds embed, bounded so that CEL can estimate its costs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, PlainSerializer

from api.durations import DURATION_PATTERN, format_duration, format_time, parse_duration, parse_time
from api.intorstring import PERCENT_PATTERN, resolve
from api.limits import MAX_FAILURE_DOMAINS, MAX_REPLICAS
from api.model import ATOMIC_LIST, ATOMIC_MAP, SET, Model, Rule, Schema, list_map
from api.noderules import ANNOTATION_KEY_PATTERN, QUALIFIED_NAME_PATTERN
from api.quantity import QUANTITY_PATTERN, parse_quantity
from api.selectors import Requirement, Selector, from_label_selector, matches, parse

__all__ = [
    "AnyQuantity",
    "Condition",
    "Conditions",
    "Duration",
    "IntOrString",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ObjectMeta",
    "ObjectReference",
    "OwnerReference",
    "Quantity",
    "RawExtension",
    "Requirement",
    "Selector",
    "Taint",
    "TemplateMeta",
    "Time",
    "format_duration",
    "format_time",
    "from_label_selector",
    "matches",
    "parse",
    "parse_duration",
    "parse_quantity",
    "parse_time",
    "resolve",
]

_QUALIFIED_NAME = 316  # 253 for the prefix, the slash, 63 for the name, less one
_LABEL_VALUE = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

Time = Annotated[AwareDatetime, PlainSerializer(format_time, return_type=str)]
"""metav1.Time: RFC 3339; written in UTC with whole seconds."""
Duration = Annotated[str, Field(max_length=32, pattern=DURATION_PATTERN)]
"""metav1.Duration of no less than zero; ``parse_duration`` reads it."""
Quantity = Annotated[str, Field(max_length=64, pattern=QUANTITY_PATTERN)]
"""A resource quantity as text; ``parse_quantity`` reads it."""
AnyQuantity = Annotated[
    int | Quantity, Schema({"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN, "maxLength": 64})
]
"""A resource quantity as upstream's own kinds take it: ``10`` is ``"10"``."""
RawExtension = Annotated[dict[str, Any], Schema({"x-kubernetes-preserve-unknown-fields": True})]
"""An object whose inside is nobody's business here."""
LabelValue = Annotated[str, Field(max_length=63, pattern=_LABEL_VALUE)]
"""At most 63 characters, alphanumeric at both ends, or empty."""
ShortText = Annotated[str, Field(max_length=253)]
"""A name of an object or field."""
Message = Annotated[str, Field(max_length=32768)]
"""Text for people."""
Count = Annotated[int, Field(ge=0, le=2**31 - 1), Schema({"format": "int32"})]
"""A non-negative int32."""
Replicas = Annotated[int, Field(ge=0, le=MAX_REPLICAS), Schema({"format": "int32"})]
"""Upper bound of `replicas`."""
FailureDomains = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=253)]], Field(max_length=MAX_FAILURE_DOMAINS), SET
]
"""Names of failure domains (zones or the like), each once."""
Generation = Annotated[int, Field(ge=0), Schema({"format": "int64"})]
"""``metadata.generation`` as a controller last saw it."""
IntOrString = Annotated[
    int | str,
    Schema({"x-kubernetes-int-or-string": True, "pattern": PERCENT_PATTERN, "maxLength": 5, "minimum": 0}),
]
"""A count or a percentage; ``resolve`` turns it into a count."""


class OwnerReference(Model):
    """The object that this one belongs to (metav1)."""

    api_version: ShortText
    """API version of the owner."""
    kind: ShortText
    """Kind of the owner."""
    name: ShortText
    """Name of the owner."""
    uid: ShortText
    """UID of the owner."""
    controller: bool | None = None
    """True for the one owner that manages this object."""
    block_owner_deletion: bool | None = None
    """True when a foreground deletion of the owner waits for this object."""


class ObjectMeta(Model):
    """Metadata of a stored object (metav1). The API server owns its schema, so no CRD repeats it."""

    name: str = ""
    """Name, unique in its namespace."""
    generate_name: str = ""
    """Prefix from which the server makes a name when none is given."""
    namespace: str = ""
    """Namespace of the object."""
    uid: str = ""
    """Identity of the object in time and space."""
    resource_version: str = ""
    """Version of the stored object; opaque."""
    generation: int = 0
    """Counts changes of the desired state."""
    creation_timestamp: Time | None = None
    """When it was created."""
    deletion_timestamp: Time | None = None
    """When its deletion was asked for; it goes when the last finalizer does."""
    deletion_grace_period_seconds: int | None = None
    """Seconds the deletion may take."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels, for selection."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations, for tools."""
    finalizers: list[str] = Field(default_factory=list)
    """Finalizers: the object is removed once the list is empty."""
    owner_references: list[OwnerReference] = Field(default_factory=list)
    """Objects that this one belongs to."""


_LABEL_KEYS = Rule(
    f"self.all(key, size(key) <= {_QUALIFIED_NAME} && key.matches(r'{QUALIFIED_NAME_PATTERN}'))",
    "a key must be a qualified name: an optional DNS subdomain and '/', and at most 63 characters of A-Z, a-z, 0-9, "
    "'-', '_' and '.'",
)
_ANNOTATION_KEYS = Rule(_LABEL_KEYS.rule.replace(QUALIFIED_NAME_PATTERN, ANNOTATION_KEY_PATTERN), _LABEL_KEYS.message)


class TemplateMeta(Model):
    """Metadata that is stamped on something made later: on the Machines of a template, or on the Node of a Machine."""

    name: ShortText | None = None
    """Name to give. Only a Machine's own ``spec.metadata`` may set it."""
    generate_name: ShortText | None = None
    """Accepted from older manifests; not used, since names derive from the owner."""
    namespace: ShortText | None = None
    """Accepted from older manifests; not used."""
    creation_timestamp: Annotated[Time | None, Schema({"nullable": True})] = None
    """Accepted from older manifests, which often carry ``null``; not used."""
    labels: Annotated[dict[str, LabelValue], Field(max_length=64), Schema(rules=(_LABEL_KEYS,))] | None = None
    """Labels to stamp."""
    annotations: Annotated[dict[str, str], Field(max_length=128), Schema(rules=(_ANNOTATION_KEYS,))] | None = None
    """Annotations to stamp."""
    owner_references: Annotated[list[OwnerReference], Field(max_length=16), ATOMIC_LIST] | None = None
    """Accepted from older manifests; not used."""
    finalizers: Annotated[list[ShortText], Field(max_length=16), SET] | None = None
    """Accepted from older manifests; not used."""


class LabelSelectorRequirement(Model):
    """One condition on one label (metav1)."""

    key: Annotated[str, Field(min_length=1, max_length=_QUALIFIED_NAME)]
    """Label that is looked at."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How it is compared with the values."""
    values: Annotated[list[LabelValue], Field(max_length=32), ATOMIC_LIST] | None = None
    """Needed for In and NotIn, forbidden for Exists and DoesNotExist."""


class LabelSelector(Model):
    """A query over labels (metav1); all parts must hold."""

    match_labels: Annotated[dict[str, LabelValue], Field(max_length=32)] | None = None
    """Labels that must have exactly these values."""
    match_expressions: Annotated[list[LabelSelectorRequirement], Field(max_length=16), ATOMIC_LIST] | None = None
    """Further conditions."""

    def compiled(self) -> Selector:
        """Raises SelectorError naming the field."""
        return from_label_selector(self.wire())


NON_EMPTY_SELECTOR = Rule(
    "(has(self.matchLabels) && size(self.matchLabels) > 0)"
    " || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
    "selector must not be empty: it would select every Machine of the namespace",
    reason="FieldValueRequired",
)
"""For selectors that decide what is owned or remediated."""

OwningSelector = Annotated[LabelSelector, ATOMIC_MAP, Schema(rules=(NON_EMPTY_SELECTOR,))]
"""A LabelSelector that must select something particular."""


class ObjectReference(Model):
    """Points at another object (core/v1)."""

    api_version: ShortText | None = None
    """API version of the object."""
    kind: ShortText | None = None
    """Kind of the object."""
    namespace: ShortText | None = None
    """Namespace of the object; empty for a cluster-scoped object."""
    name: ShortText | None = None
    """Name of the object."""
    uid: ShortText | None = None
    """UID of the object."""
    resource_version: ShortText | None = None
    """Version of the object that was meant."""
    field_path: Annotated[str, Field(max_length=1024)] | None = None
    """Part of the object that is meant."""


class Condition(Model):
    """One aspect of an object's state (metav1.Condition)."""

    type: Annotated[str, Field(min_length=1, max_length=_QUALIFIED_NAME)]
    """Type of the condition, in CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """Reason of the last change, one word in CamelCase, for programs."""
    message: Message
    """Details for people; may be empty."""
    last_transition_time: Time
    """When ``status`` last changed."""
    observed_generation: Generation | None = None
    """``metadata.generation`` that the condition was computed from."""


Conditions = Annotated[list[Condition], Field(max_length=64), list_map("type")]
"""Conditions, one of each type."""


class Taint(Model):
    """Keeps pods that don't tolerate it away from a Node (core/v1)."""

    key: Annotated[str, Field(min_length=1, max_length=_QUALIFIED_NAME, pattern=QUALIFIED_NAME_PATTERN)]
    """Key of the taint."""
    value: LabelValue | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What happens to pods that don't tolerate it."""
    time_added: Annotated[Time | None, Schema({"nullable": True})] = None
    """When a NoExecute taint was added."""


Taints = Annotated[list[Taint], Field(max_length=64), list_map("key", "effect")]
"""Taints, identified by key and effect."""

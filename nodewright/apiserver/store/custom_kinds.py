"""What does a CustomResourceDefinition define? Its faults, its conditions, and the resources it adds.

Follows apiextensions.k8s.io/v1 (validation.go, naming_controller.go, apiapproval_controller.go) for what a client
can tell; conditions are written at once, since there are no controllers to wait for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodewright.apiserver.store.copying import deep_copy
from nodewright.apiserver.store.custom_schemas import schema_faults
from nodewright.apiserver.store.metadata import invalid
from nodewright.apiserver.store.names import dns_label_faults, subdomain_faults
from nodewright.apiserver.store.registry import ResourceRegistry
from nodewright.apiserver.values import Cause, Column, Obj, Resource, ScalePaths

CRD_COLLECTION = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
APPROVAL = "api-approved.kubernetes.io"


def fill_in(crd: Obj) -> None:
    """Write the defaults into a CRD's spec. Replaces `crd["spec"]`, changing nothing that is shared."""
    spec = deep_copy(crd.get("spec") or {})
    names = spec.get("names")
    if isinstance(names, dict) and isinstance(names.get("kind"), str):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    for version in spec.get("versions") or ():
        for column in version.get("additionalPrinterColumns") or () if isinstance(version, dict) else ():
            if column.get("priority") == 0:
                del column["priority"]
    crd["spec"] = spec


def faults(crd: Obj, old: Obj | None) -> list[Cause]:
    """Say what is wrong with a CRD whose defaults are filled in; its schemas are checked by compiling them."""
    spec = crd.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group") or ""
    found = [_required(f"spec.{f}") for f in ("group", "scope", "names", "versions") if not spec.get(f)]
    found += [_required(f"spec.names.{f}") for f in ("plural", "kind") if not names.get(f)]
    if found:
        return found
    expected = f"{names['plural']}.{group}"
    if crd["metadata"].get("name", "") != expected:
        name = f'"{crd["metadata"].get("name", "")}"'
        found.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found += [invalid("spec.group", f'"{group}"', fault) for fault in subdomain_faults(group)]
    found += _name_faults(names)
    if spec["scope"] not in ("Namespaced", "Cluster"):
        message = f'Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"'
        found.append(Cause("spec.scope", "FieldValueNotSupported", message))
    found += _version_faults(spec["versions"])
    found += _approval_faults(crd, group)
    return found + (_changed_faults(spec, old) if old is not None else [])


def _name_faults(names: Obj) -> list[Cause]:
    found = []
    for field in ("plural", "singular"):
        for fault in dns_label_faults(names[field]):
            found.append(invalid(f"spec.names.{field}", f'"{names[field]}"', fault))
    for index, short in enumerate(names.get("shortNames") or ()):
        for fault in dns_label_faults(short):
            found.append(invalid(f"spec.names.shortNames[{index}]", f'"{short}"', fault))
    return found


def _version_faults(versions: Any) -> list[Cause]:
    if not isinstance(versions, list) or not all(isinstance(version, dict) for version in versions):
        return [invalid("spec.versions", "null", "must be a list of versions")]
    found = []
    if sum(1 for version in versions if version.get("storage")) != 1:
        found.append(invalid("spec.versions", "[]", "must have exactly one version marked as storage version"))
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        found.append(invalid("spec.versions", "[]", "must contain unique version names"))
    for index in range(len(versions)):
        found += _faults_of_version(versions, index)
    return found


def _faults_of_version(versions: list[Obj], index: int) -> list[Cause]:
    found = []
    version, path = versions[index], f"spec.versions[{index}]"
    # The real server speaks of the internal type, in which what all versions share is kept once.
    shared = "spec" if len(versions) == 1 else path
    if not version.get("name"):
        found.append(_required(f"{path}.name"))
    if not (version.get("schema") or {}).get("openAPIV3Schema"):
        found.append(_required(f"{path}.schema.openAPIV3Schema"))
    else:
        found += schema_faults(schema_path(versions, index), version["schema"]["openAPIV3Schema"])
    for field in ("specReplicasPath", "statusReplicasPath") if _scale(version) is not None else ():
        if not (_scale(version) or {}).get(field):
            found.append(_required(f"{shared}.subresources.scale.{field}"))
    return found


def schema_path(versions: Sequence[Obj], index: int) -> str:
    """Say where the schema of a version lies, in the words of the real server's errors."""
    if len(versions) == 1:
        return "spec.validation.openAPIV3Schema"
    return f"spec.versions[{index}].schema.openAPIV3Schema"


def _approval_faults(crd: Obj, group: str) -> list[Cause]:
    protected = group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io")
    if not protected or (crd["metadata"].get("annotations") or {}).get(APPROVAL):
        return []
    message = (
        f'Required value: protected groups must have approval annotation "{APPROVAL}", see '
        "https://github.com/kubernetes/enhancements/pull/1111"
    )
    return [Cause(f"metadata.annotations[{APPROVAL}]", "FieldValueRequired", message)]


def _changed_faults(spec: Obj, old: Obj) -> list[Cause]:
    before = old["spec"]
    found = []
    for field, new, was in (
        ("group", spec["group"], before["group"]),
        ("scope", spec["scope"], before["scope"]),
        ("names.plural", spec["names"]["plural"], before["names"]["plural"]),
        ("names.kind", spec["names"]["kind"], before["names"]["kind"]),
    ):
        if new != was:
            found.append(invalid(f"spec.{field}", f'"{new}"', "field is immutable"))
    versions = {version["name"] for version in spec["versions"]}
    for index, stored in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if stored not in versions:
            message = "missing from spec.versions; it must be removed from status.storedVersions first"
            found.append(invalid(f"status.storedVersions[{index}]", f'"{stored}"', message))
    return found


def status(crd: Obj, old: Obj | None, registry: ResourceRegistry, now: str) -> Obj:
    """Make the status: names accepted unless another kind has them, and established if they are.

    ``storedVersions`` are those that the writer of the status left in it: who has stored all objects anew takes
    versions out of it.
    """
    spec = crd["spec"]
    clash = _clash(crd, registry)
    before = (old or {}).get("status") or {}
    stored = _stored(crd, before)
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return {
        "conditions": _with_times(_conditions(crd, clash), before.get("conditions") or [], now),
        "acceptedNames": spec["names"] if not clash else before.get("acceptedNames", {"plural": "", "kind": ""}),
        "storedVersions": stored if storage in stored else [*stored, storage],
    }


def _conditions(crd: Obj, clash: tuple[str, str, str] | None) -> list[Obj]:
    names = clash or ("True", "NoConflicts", "no conflicts found")
    accepted = ("True", "InitialNamesAccepted", "the initial names have been accepted")
    refused = ("False", "NotAccepted", "not all names are accepted")
    conditions = [_condition("NamesAccepted", *names), _condition("Established", *(refused if clash else accepted))]
    approval = (crd["metadata"].get("annotations") or {}).get(APPROVAL)
    if approval is not None:
        conditions.append(_approval(approval))
    return conditions


def _stored(crd: Obj, before: Obj) -> list[str]:
    """A write of the status may take versions out, and bring none."""
    listed = list(before.get("storedVersions") or ())
    written = (crd.get("status") or {}).get("storedVersions")
    return [each for each in listed if each in written] if isinstance(written, list) else listed


def terminating(crd: Obj, now: str) -> Obj:
    """Make the status of a CRD whose objects are about to be deleted."""
    before = crd.get("status") or {}
    kept = [c for c in before.get("conditions") or () if c.get("type") != "Terminating"]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    condition = {**_condition("Terminating", "True", "InstanceDeletionPending", message), "lastTransitionTime": now}
    return {**before, "conditions": [*kept, condition]}


def established(crd: Obj) -> bool:
    """Say whether a CRD's kinds are served."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def resources_of(crd: Obj) -> list[Resource]:
    """Make the resources of a CRD's versions, in their order."""
    return [_resource(crd["spec"], version) for version in crd["spec"]["versions"]]


def _resource(spec: Obj, version: Obj) -> Resource:
    names = spec["names"]
    subresources = {name for name in ("status", "scale") if name in (version.get("subresources") or {})}
    scale = _scale(version)
    return Resource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names["singular"],
        list_kind=names["listKind"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(subresources),
        scale=ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", ""))
        if scale is not None
        else None,
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        schema=version["schema"]["openAPIV3Schema"],
        builtin=False,
        served=bool(version.get("served")),
        storage=bool(version.get("storage")),
        deprecated=bool(version.get("deprecated")),
        selectable_fields=tuple(f["jsonPath"].lstrip(".") for f in version.get("selectableFields") or ()),
    )


def _scale(version: Obj) -> Obj | None:
    scale: Obj | None = (version.get("subresources") or {}).get("scale")
    return scale


def _column(column: Obj) -> Column:
    return Column(
        column["name"],
        column["type"],
        column["jsonPath"],
        column.get("description", ""),
        column.get("format", ""),
        column.get("priority", 0),
    )


def _clash(crd: Obj, registry: ResourceRegistry) -> tuple[str, str, str] | None:
    """Say which name another resource of the group has, as (status, reason, message) of NamesAccepted."""
    spec, names = crd["spec"], crd["spec"]["names"]
    taken: set[str] = set()
    kinds: set[str] = set()
    for resource in registry.all():
        if resource.group == spec["group"] and resource.plural != names["plural"]:
            taken |= {resource.plural, resource.singular, *resource.short_names}
            kinds |= {resource.kind, resource.list_kind}
    for name, reason in (
        (names["plural"], "PluralConflict"),
        (names["singular"], "SingularConflict"),
        *((short, "ShortNamesConflict") for short in names.get("shortNames") or ()),
    ):
        if name in taken:
            return "False", reason, f'"{name}" is already in use'
    for name, reason in ((names["kind"], "KindConflict"), (names["listKind"], "ListKindConflict")):
        if name in kinds:
            return "False", reason, f'"{name}" is already in use'
    return None


def _approval(annotation: str) -> Obj:
    kind = "KubernetesAPIApprovalPolicyConformant"
    if annotation.startswith("unapproved"):
        message = f'protected groups must have approval annotation "{APPROVAL}", but it says "{annotation}"'
        return _condition(kind, "False", "UnapprovedAnnotation", message)
    if annotation.startswith("https://"):
        return _condition(kind, "True", "ApprovedAnnotation", f"approved in {annotation}")
    message = f'protected groups must have approval annotation "{APPROVAL}" with a URL, but it says "{annotation}"'
    return _condition(kind, "False", "InvalidAnnotation", message)


def _condition(kind: str, value: str, reason: str, message: str) -> Obj:
    return {"type": kind, "status": value, "reason": reason, "message": message}


def _with_times(conditions: Sequence[Obj], before: Sequence[Obj], now: str) -> list[Obj]:
    known = {c.get("type"): c for c in before}
    timed = []
    for condition in conditions:
        old = known.get(condition["type"], {})
        since = old.get("lastTransitionTime", now) if old.get("status") == condition["status"] else now
        timed.append({"lastTransitionTime": since, **condition})
    return timed


def _required(field: str) -> Cause:
    return Cause(field, "FieldValueRequired", "Required value")

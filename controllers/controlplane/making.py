"""The bodies of what a change writes: Machines, and patches of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api import names
from controllers.bootstrap.etcd_snapshot import EtcdSnapshot, text_of
from controllers.controlplane.observe import Observed
from controllers.controlplane.placement import next_domain
from controllers.controlplane.renewal import annotation, renewal_of
from controllers.kernel.actions import Create, Patch
from controllers.kernel.machine_facts import MachineFacts
from controllers.kernel.names import label_value
from controllers.kernel.ownership import reference_to
from controllers.kernel.refs import CONTROL_PLANE, MACHINE, annotations_of, key_of, mapping, spec_of
from controllers.kernel.template import FAILURE_DOMAIN, IN_PLACE_FIELDS, NEVER_FROM_TEMPLATE, difference

_NOT_OURS = IN_PLACE_FIELDS | NEVER_FROM_TEMPLATE


def create(observed: Observed, name: str, why: str, *, first: bool) -> Create:
    """A Machine is born with all that it needs: owner, finalizer, hook, and whether it initializes the cluster."""
    template = observed.template
    metadata = mapping(template.get("metadata"))
    annotations = {
        **mapping(metadata.get("annotations")),
        names.TEMPLATE_ANNOTATION: observed.revision.digest,
        names.IN_PLACE_ANNOTATION: str(names.InPlace.REQUIRE),
        names.CONTROL_PLANE_HOOK: key_of(observed.body).name,
        **({names.CONTROL_PLANE_INIT: "true"} if first else {}),
        **({names.ETCD_SNAPSHOT: _snapshot(observed)} if _snapshot(observed) else {}),
        **({names.MACHINE_CLASS_ANNOTATION: observed.class_digest} if observed.class_digest else {}),
    }
    spec = {key: value for key, value in spec_of(template).items() if key not in NEVER_FROM_TEMPLATE}
    domain = next_domain(observed.state)
    if domain:
        spec, why = {**spec, FAILURE_DOMAIN: domain}, f"{why}, in failure domain {domain}"
    body = {
        "apiVersion": MACHINE.api_version,
        "kind": MACHINE.name,
        "metadata": {
            "name": name,
            "namespace": key_of(observed.body).namespace,
            "labels": {**mapping(metadata.get("labels")), **own_labels(observed)},
            "annotations": annotations,
            "finalizers": [names.MACHINE_FINALIZER],
            "ownerReferences": [reference_to(CONTROL_PLANE, observed.body)],
        },
        "spec": spec,
    }
    return Create(MACHINE, body, why)


def own_labels(observed: Observed) -> dict[str, str]:
    """By these a ControlPlane's Machines are found, and those of its Cluster."""
    found = {
        names.CONTROL_PLANE_NAME_LABEL: label_value(key_of(observed.body).name),
        names.CLUSTER_NAME_LABEL: label_value(observed.spec.cluster_name or ""),
    }
    return {key: value for key, value in found.items() if value}


def selector(observed: Observed) -> str:
    """``status.labelSelector``, for the scale subresource."""
    return ",".join(f"{key}={value}" for key, value in sorted(own_labels(observed).items()))


def update(observed: Observed, machine: MachineFacts, why: str) -> Patch:
    """Hand the present template to a Machine. Its host is never replaced for it: etcd's member would be lost."""
    wanted, have = _of_revision(spec_of(observed.template)), _of_revision(spec_of(machine.body))
    spec = difference({k: v for k, v in have.items() if k != FAILURE_DOMAIN or k in wanted}, wanted)
    notes: dict[str, Any] = {
        names.TEMPLATE_ANNOTATION: observed.revision.digest,
        names.IN_PLACE_ANNOTATION: str(names.InPlace.REQUIRE),
    }
    if annotations_of(machine.body).get(names.MACHINE_CLASS_ANNOTATION, "") != observed.class_digest:
        notes[names.MACHINE_CLASS_ANNOTATION] = observed.class_digest or None
    if annotations_of(machine.body).get(names.ETCD_SNAPSHOT, "") != _snapshot(observed):
        notes[names.ETCD_SNAPSHOT] = _snapshot(observed) or None
    due = renewal_of(machine, observed.certificates, observed.spec.rollout.renew_certificates_before, observed.now).due
    if due is not None and "versions" not in spec:  # an upgrade renews them
        notes |= annotation(due)
    patch: dict[str, Any] = {"metadata": {"annotations": notes}}
    if spec:
        patch["spec"] = spec
    return Patch(machine.ref, patch, why, resource_version=machine.resource_version)


def _snapshot(observed: Observed) -> str:
    """What its host does before an upgrade, "" for nothing. No part of the revision: no Machine changes for it."""
    asked = observed.spec.etcd.snapshot
    return text_of(EtcdSnapshot(asked.path, asked.keep)) if asked.path else ""


def _of_revision(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _NOT_OURS}

"""Who may do what, and the data that goes with it: bindings, certificates, accounts, Secrets, ConfigMaps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nodewright.controlplane.table import ages
from nodewright.controlplane.table.builtin.basics import age, items
from nodewright.controlplane.table.printer import NONE, Printer, columns, name_of, part
from nodewright.controlplane.values import Obj


def _secret(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(part(obj, "data")), age(obj, now)]


def _config_map(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), len(part(obj, "data")) + len(part(obj, "binaryData")), age(obj, now)]


def _plain(obj: Obj, now: datetime) -> list[Any]:
    return [name_of(obj), age(obj, now)]


def _binding(obj: Obj, now: datetime) -> list[Any]:
    role = part(obj, "roleRef")
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in items(obj, "subjects"):
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        subjects.setdefault(subject.get("kind", ""), []).append(name)
    return [
        name_of(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        age(obj, now),
        *[", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")],
    ]


def _signing_request(obj: Obj, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username", ""),
        NONE if seconds is None else ages.text(seconds),
        _signing_state(part(obj, "status")),
    ]


def _signing_state(status: Obj) -> str:
    types = {condition.get("type") for condition in items(status, "conditions")}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    if "Failed" in types:
        words.append("Failed")
    if status.get("certificate"):
        words.append("Issued")
    return ",".join(words)


_BINDING = columns("Name | Role | Age | +Users | +Groups | +ServiceAccounts")

PRINTERS = {
    ("v1", "Secret"): Printer(columns("Name | Type | Data | Age"), _secret),
    ("v1", "ConfigMap"): Printer(columns("Name | Data | Age"), _config_map),
    ("v1", "ServiceAccount"): Printer(columns("Name | Age"), _plain),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): Printer(_BINDING, _binding),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): Printer(_BINDING, _binding),
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): Printer(
        columns("Name | Age | SignerName | Requestor | RequestedDuration | Condition"), _signing_request
    ),
}

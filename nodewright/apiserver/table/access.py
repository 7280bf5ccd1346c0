"""The tables of who may do what, and of what they are given: bindings, requests, accounts, secrets, configuration."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nodewright.apiserver.table.layout import AGE, NAME, Cells, Layout, text, wide
from nodewright.apiserver.table.wording import NONE, age, at, condition, human_duration, name
from nodewright.apiserver.values import Obj


def _secret(obj: Obj, now: datetime) -> Cells:
    return [name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _config_map(obj: Obj, now: datetime) -> Cells:
    return [name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _account(obj: Obj, now: datetime) -> Cells:
    return [name(obj), age(obj, now)]


def _binding(obj: Obj, now: datetime) -> Cells:
    role = f"{at(obj, 'roleRef', 'kind', default='')}/{at(obj, 'roleRef', 'name', default='')}"
    subjects = obj.get("subjects") or ()
    named = {
        kind: ", ".join(str(s.get("name", "")) for s in subjects if s.get("kind") == kind) for kind in ("User", "Group")
    }
    accounts = [s for s in subjects if s.get("kind") == "ServiceAccount"]
    spelled = ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in accounts)
    return [name(obj), role, age(obj, now), named["User"], named["Group"], spelled]


def _signing_request(obj: Obj, now: datetime) -> Cells:
    expiration = at(obj, "spec", "expirationSeconds")
    state = "Denied" if condition(obj, "Denied") else "Approved" if condition(obj, "Approved") else "Pending"
    state += ",Failed" if condition(obj, "Failed") else ""
    state += ",Issued" if at(obj, "status", "certificate") else ""
    return [
        name(obj),
        age(obj, now),
        at(obj, "spec", "signerName", default="") or NONE,
        at(obj, "spec", "username", default=""),
        NONE if expiration is None else human_duration(expiration),
        state,
    ]


_BINDING: Final = Layout(
    (NAME, text("Role"), AGE, wide(text("Users")), wide(text("Groups")), wide(text("ServiceAccounts"))), _binding
)
_RBAC: Final = "rbac.authorization.k8s.io"

LAYOUTS: Final = {
    ("", "Secret"): Layout((NAME, text("Type"), text("Data", "How many entries it has."), AGE), _secret),
    ("", "ConfigMap"): Layout((NAME, text("Data", "How many entries it has."), AGE), _config_map),
    ("", "ServiceAccount"): Layout((NAME, AGE), _account),
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    ("certificates.k8s.io", "CertificateSigningRequest"): Layout(
        (NAME, AGE, text("SignerName"), text("Requestor"), text("RequestedDuration"), text("Condition")),
        _signing_request,
    ),
}

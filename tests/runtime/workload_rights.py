"""A kubeconfig for a workload cluster. Its user has the rights of docs/tasks/workload-clusters.md and no others."""

from __future__ import annotations

import json
from typing import Any

import yaml

from hack.program import Kubectl
from hack.realplane import RealPlane
from tests.runtime.test_real_workload_cluster import documented, inlined

_ACCOUNT = {"kind": "ServiceAccount", "name": "nodewright", "namespace": "default"}
_HOME_ONLY = "nodewright-kubeconfigs"


def create(kubectl: Kubectl, *objects: dict[str, Any]) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def kubeconfig_of_the_page(prod: Kubectl, plane: RealPlane, *more: dict[str, Any]) -> bytes:
    """Create the account with the documented roles, and one of the rules ``more``; its kubeconfig with a token."""
    roles = [role for kind in ("ClusterRole", "Role") for role in documented("workload-clusters.md", kind)]
    roles = [role for role in roles if role["metadata"]["name"] != _HOME_ONLY]
    if more:
        head = {"apiVersion": roles[0]["apiVersion"], "kind": "ClusterRole", "metadata": {"name": "more"}}
        roles.append({**head, "rules": list(more)})
    prod("create", "serviceaccount", _ACCOUNT["name"])
    given = [doc for kind in ("Namespace", "RoleBinding") for doc in documented("workload-clusters.md", kind)]
    of_others = {(doc["metadata"].get("namespace"), doc["metadata"]["name"]) for doc in given}
    bound = [
        _bound(role) for role in roles if (role["metadata"].get("namespace"), role["metadata"]["name"]) not in of_others
    ]
    create(prod, *given, *roles, *bound)
    config = yaml.safe_load(inlined(plane.kubeconfig))
    config["users"][0]["user"] = {"token": prod("create", "token", _ACCOUNT["name"]).strip()}
    return yaml.safe_dump(config).encode()


def _bound(role: dict[str, Any]) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": role["metadata"]["name"]}
    head = {"apiVersion": role["apiVersion"], "kind": f"{role['kind']}Binding", "metadata": role["metadata"]}
    return {**head, "roleRef": reference, "subjects": [_ACCOUNT]}

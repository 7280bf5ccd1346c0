"""What a cluster needs so that hosts that join it can report: a namespace, and the right to make Events in it."""

from __future__ import annotations

from typing import Any

from api import names
from controllers.kernel.refs import Kind

ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)


def objects() -> tuple[tuple[Kind, dict[str, Any]], ...]:
    """In the order in which they are made. Nobody but bootstrap tokens gets a right by them, and no right to read."""
    inside = {"name": names.BOOTSTRAP_REPORTER, "namespace": names.BOOTSTRAP_NAMESPACE}
    rules = [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    role = {"apiGroup": ROLE.group, "kind": ROLE.name, "name": names.BOOTSTRAP_REPORTER}
    subjects = [{"apiGroup": ROLE.group, "kind": "Group", "name": names.OWN_TOKEN_GROUP}]
    return (
        (NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.BOOTSTRAP_NAMESPACE}}),
        (ROLE, {"apiVersion": ROLE.api_version, "kind": ROLE.name, "metadata": inside, "rules": rules}),
        (
            ROLE_BINDING,
            {
                "apiVersion": ROLE_BINDING.api_version,
                "kind": ROLE_BINDING.name,
                "metadata": inside,
                "roleRef": role,
                "subjects": subjects,
            },
        ),
    )

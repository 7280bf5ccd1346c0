"""The kinds of objects that ``deploy/`` has, so that they can be addressed without discovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.kernel.refs import Kind

CRDS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")
DISRUPTION_BUDGETS = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
POLICIES = (
    Kind(_ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False),
    Kind(_ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False),
)
KINDS = (
    Kind("", "v1", "Namespace", "namespaces", namespaced=False),
    CRDS,
    Kind("", "v1", "ServiceAccount", "serviceaccounts"),
    Kind(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
    Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Kind(_RBAC, "v1", "Role", "roles"),
    Kind(_RBAC, "v1", "RoleBinding", "rolebindings"),
    Kind("", "v1", "ConfigMap", "configmaps"),
    Kind("", "v1", "Service", "services"),
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    Kind(_ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False),
    *POLICIES,
    Kind("cert-manager.io", "v1", "Certificate", "certificates"),
    Kind("cert-manager.io", "v1", "Issuer", "issuers"),
)
"""In the order in which they are put in place; they go in the opposite one."""
_BY_TYPE = {(kind.api_version, kind.name): kind for kind in KINDS}


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """Raises KeyError for a kind that is not in ``deploy/``."""
    return _BY_TYPE[obj["apiVersion"], obj["kind"]]

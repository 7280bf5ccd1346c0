"""A control plane of a newer version joins: the cluster's configuration gets the version first, in several requests.

``kubeadm join`` makes the static pods of the version in ConfigMap ``kube-system/kubeadm-config``, whichever kubeadm
runs. So the version there is raised before the host gets its data (Cluster API's KubeadmControlPlane does so, too). It
never goes down, and by one minor version at most: kubeadm and Kubernetes's version skew policy.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from api import yamltext
from api.conditions import Reason
from controllers.bootstrap.calls import Call, Change, Get, Post, Refused
from controllers.kernel.refs import CLUSTER_ROLE_BINDING, CONFIG_MAP, Key, Obj, Ref, mapping, uid_of
from controllers.kernel.version import Version, dotted, parse

CONFIG = Key("kube-system", "kubeadm-config")
_DOCUMENT = "ClusterConfiguration"
_KUBELET_CLIENT = "kubeadm:apiserver-kubelet-client"


def agree(version: str) -> Generator[Call, Obj | None, Refused | bool]:
    """See that hosts join with ``version`` (1.36.3). False: somebody changed the configuration meanwhile, so again.

    Refused: ``kubeadm init`` has not ended yet, the configuration can't be read, or the way to ``version`` is none.
    """
    found = yield Get("nodes", CONFIG, CONFIG_MAP)
    if found is None:
        text = f"ConfigMap {CONFIG} is not there: the cluster is still being made, or it was not made by kubeadm"
        return Refused(str(Reason.WAITING_FOR_CONTROL_PLANE), text)
    document = _document(found)
    if isinstance(document, Refused):
        return document
    there, wanted = parse(str(document.get("kubernetesVersion"))), parse(version)
    if there is None or wanted is None:
        return _unreadable("its kubernetesVersion is no version")
    if there == wanted:
        return True
    wrong = _way(there, wanted)
    if wrong:
        return Refused(str(Reason.VERSION_SKEW), wrong)
    yield Post("nodes", _kubelet_client(), CLUSTER_ROLE_BINDING)
    raised = yamltext.dump({**document, "kubernetesVersion": f"v{version}"})
    target = Ref(CONFIG_MAP, CONFIG, uid_of(found))
    patch = {"data": {_DOCUMENT: raised}}
    changed = yield Change("nodes", target, patch, str(found["metadata"].get("resourceVersion") or ""))
    return changed is not None


def _document(config: Obj) -> Mapping[str, Any] | Refused:
    text = mapping(config.get("data")).get(_DOCUMENT)
    if not isinstance(text, str):
        return _unreadable(f"it has no {_DOCUMENT}")
    try:
        document = yamltext.load(text)
    except yamltext.TextError as error:
        return _unreadable(str(error))
    return document if isinstance(document, Mapping) else _unreadable(f"its {_DOCUMENT} is no map")


def _unreadable(why: str) -> Refused:
    return Refused(str(Reason.VERSION_SKEW), f"ConfigMap {CONFIG} in the cluster: {why}; mend it with `kubectl edit`")


def _way(there: Version, wanted: Version) -> str:
    """Why no host of ``wanted`` may join a cluster of ``there``, "" if one may."""
    if wanted < there:
        return (
            f"kubeadm sets hosts up with {dotted(there)}, which ConfigMap {CONFIG} says: {dotted(wanted)} is older, "
            "and a control plane can't go back"
        )
    if wanted[0] != there[0] or wanted[1] > there[1] + 1:
        return f"the cluster is {dotted(there)}, so the next is {there[0]}.{there[1] + 1}: {dotted(wanted)} skips it"
    return ""


def _kubelet_client() -> dict[str, Any]:
    """Newer kubeadms make the API server's client of kubelets a user that only this allows to read logs and run exec
    (kubernetes#138957); ``kubeadm join`` does not make it (cluster-api#13770)."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _KUBELET_CLIENT},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "kube-apiserver-kubelet-client"}],
    }

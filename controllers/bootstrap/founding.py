"""The Secrets of a cluster that Machines make, and which of them makes it: a conversation, as ``credentials`` has them.

    <cluster>-etcd, -proxy, -sa, -ca   key pairs, made once; those that a person brought count
    <cluster>-kubeconfig               by which the cluster is reached, made last
    annotation of <cluster>-ca         the one Machine whose host runs ``kubeadm init``

Each Secret is made by a create that fails where it is there, and is read back then: two controllers, or a process that
died in between, end with the same pairs. The annotation is written under the Secret's resourceVersion, so one Machine
has it. It lies in the Secret that no cluster can be made without, so a backup that has the one has the other too.
"""

from __future__ import annotations

import base64
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from api import names
from api.conditions import Reason
from controllers.bootstrap.authorities import (
    AUTHORITIES,
    CLUSTER_CA,
    NEW_KEYS,
    Authority,
    KeyPair,
    Keys,
    Pki,
    admin_kubeconfig,
    data_of_pair,
    pair_in,
)
from controllers.bootstrap.calls import Call, Change, Get, Post, Refused, data_of
from controllers.kernel.bootstrapping import FoundingOrder
from controllers.kernel.node_policy import kubeconfig_secret_of
from controllers.kernel.refs import SECRET, Key, Obj, Ref, annotations_of, key_of, objects, uid_of

Talk = Generator[Call, Obj | None, Any]


@dataclass(frozen=True, slots=True)
class Founded:
    """``initializes``: this Machine's host makes the cluster; else it joins."""

    initializes: bool
    pki: Pki = field(repr=False)

    @property
    def ca(self) -> str:
        return self.pki[CLUSTER_CA.suffix].certificate


def found(
    order: FoundingOrder, machine: Ref, now: datetime, keys: Keys = NEW_KEYS
) -> Generator[Call, Obj | None, Founded | Refused | None]:
    """See that all Secrets are there, and tell whether this host makes the cluster. None: somebody was faster."""
    kubeconfig = yield Get("machines", kubeconfig_secret_of(order.cluster.key))
    if kubeconfig is not None and is_of_another(kubeconfig, order.cluster):
        return _of_another(kubeconfig)
    pairs: dict[str, KeyPair] = {}
    ca: Obj | None = None
    for authority in reversed(AUTHORITIES):
        secret = yield from _secret(order, authority, now, keys if kubeconfig is None else None)
        if secret is None or isinstance(secret, Refused):
            return secret
        pair = pair_in(data_of(secret), authority, now)
        if isinstance(pair, str):
            return Refused(str(Reason.INVALID_CERTIFICATE_AUTHORITY), f"Secret {key_of(secret)}: {pair}")
        pairs[authority.suffix] = pair
        ca = secret
    assert ca is not None
    if kubeconfig is None:
        kubeconfig = yield Post("machines", _kubeconfig(order, pairs[CLUSTER_CA.suffix], now))
        if kubeconfig is None:
            return None
    role = yield from _initializes(order, machine, ca, is_ours(kubeconfig))
    return Founded(role, pairs) if isinstance(role, bool) else role


def release(cluster: Key, machine_uid: str) -> Talk:
    """Let another Machine make the cluster: this one goes and its host never became a Node."""
    secret = yield Get("machines", authority_key(cluster, CLUSTER_CA))
    if secret is not None and _holder(secret)[1] == machine_uid:
        patch = {"metadata": {"annotations": {names.CONTROL_PLANE_MADE_BY: None}}}
        yield Change("machines", Ref(SECRET, key_of(secret), uid_of(secret)), patch, _version(secret))


def authority_key(cluster: Key, authority: Authority) -> Key:
    """The Secret of a key pair (Cluster API's name)."""
    return Key(cluster.namespace, f"{cluster.name}{authority.suffix}")


def _secret(
    order: FoundingOrder, authority: Authority, now: datetime, keys: Keys | None
) -> Generator[Call, Obj | None, Obj | Refused | None]:
    """The Secret of one pair. ``keys`` None: the cluster was made already, so no new pair would fit it."""
    key = authority_key(order.cluster.key, authority)
    secret = yield Get("machines", key)
    if secret is not None:
        return _of_another(secret) if is_of_another(secret, order.cluster) else secret
    if keys is None:
        kubeconfig = kubeconfig_secret_of(order.cluster.key)
        text = (
            f"Secret {key} is missing and Secret {kubeconfig} is there, so the cluster was made with another pair: "
            "put it back from a backup or from /etc/kubernetes/pki of a control plane"
        )
        return Refused(str(Reason.INVALID_CERTIFICATE_AUTHORITY), text)
    pair = keys.authority(authority.common_name, now) if authority.common_name else keys.signing()
    body = _body(order, key.name, data_of_pair(pair))
    return (yield Post("machines", body))


def _initializes(
    order: FoundingOrder, machine: Ref, ca: Obj, ours: bool
) -> Generator[Call, Obj | None, bool | Refused | None]:
    """Whether this Machine's host makes the cluster. One that answers is joined, whoever made it."""
    if order.answers:
        return False
    server = f"https://{order.endpoint}"
    name, holder = _holder(ca)
    if not ours or order.was_made or (holder == machine.uid and order.had_node):
        text = f"the control plane at {server} was made already and does not answer: mend it, or restore a backup"
        return Refused(str(Reason.WORKLOAD_UNREACHABLE), text)
    if holder == machine.uid:
        return True
    if holder:
        text = (
            f"Machine {name} makes the control plane, which does not answer at {server} yet. If that Machine is gone "
            f"for good, remove the annotation {names.CONTROL_PLANE_MADE_BY} from Secret {key_of(ca)}"
        )
        return Refused(str(Reason.WAITING_FOR_CONTROL_PLANE), text)
    mark = {names.CONTROL_PLANE_MADE_BY: f"{machine.key.name}/{machine.uid}"}
    target = Ref(SECRET, key_of(ca), uid_of(ca))
    changed = yield Change("machines", target, {"metadata": {"annotations": mark}}, _version(ca))
    return True if changed is not None else None


def _holder(ca: Obj) -> tuple[str, str]:
    """Name and UID of the Machine that makes the cluster, "" for none."""
    given = annotations_of(ca).get(names.CONTROL_PLANE_MADE_BY)
    name, _, uid = given.partition("/") if isinstance(given, str) else ("", "", "")
    return name, uid


def is_of_another(secret: Obj, cluster: Ref) -> bool:
    """Whether it belongs to an earlier Cluster of that name, with which it is about to go."""
    owners = objects(secret["metadata"].get("ownerReferences"))
    return any(each.get("kind") == cluster.kind.name and each.get("uid") != cluster.uid for each in owners)


def _of_another(secret: Obj) -> Refused:
    text = f"Secret {key_of(secret)} belongs to another Cluster object: wait until it is gone, or delete it"
    return Refused(str(Reason.SECRET_CONFLICT), text)


def is_ours(kubeconfig: Obj) -> bool:
    return annotations_of(kubeconfig).get(names.MANAGED_KUBECONFIG_ANNOTATION) == "true"


def _kubeconfig(order: FoundingOrder, ca: KeyPair, now: datetime) -> dict[str, Any]:
    text = admin_kubeconfig(order.cluster.key.name, f"https://{order.endpoint}", ca, now)
    data = {names.KUBECONFIG_KEY: base64.b64encode(text.encode()).decode()}
    body = _body(order, kubeconfig_secret_of(order.cluster.key).name, data)
    body["metadata"]["annotations"] = {names.MANAGED_KUBECONFIG_ANNOTATION: "true"}
    return body


def _body(order: FoundingOrder, name: str, data: dict[str, str]) -> dict[str, Any]:
    """Owned by the Cluster: they go with it, when its last Machine is gone."""
    cluster = order.cluster
    owner = {
        "apiVersion": cluster.kind.api_version,
        "kind": cluster.kind.name,
        "name": cluster.key.name,
        "uid": cluster.uid,
    }
    labels = {names.CLUSTER_NAME_LABEL: cluster.key.name, names.CAPI_CLUSTER_NAME_LABEL: cluster.key.name}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": names.AUTHORITY_SECRET_TYPE,
        "metadata": {
            "name": name,
            "namespace": cluster.key.namespace,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "data": data,
    }


def _version(obj: Obj) -> str:
    return str(obj["metadata"].get("resourceVersion") or "")

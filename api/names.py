"""Every name that crosses the wire: group, finalizers, labels, annotations and phases.

Beside it live those of ProvisioningRequests in ``provisioning_names``, condition types and reasons in ``conditions``,
and how long names may be in ``limits``. Each constant says who set the name and what it means; "CA" is the Cluster
Autoscaler's ``clusterapi`` provider, "CAPI" Cluster API v1beta2, "MC" kubermatic's machine-controller.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

# --- group ----------------------------------------------------------------------------------------------------------

GROUP: Final = "cluster.k8s.io"
"""KEP-3's own API group; a ``*.k8s.io`` group needs ``api-approved.kubernetes.io`` on its CRDs."""
VERSION: Final = "v1alpha1"
"""The only version of the group that was ever served."""
API_VERSION: Final = f"{GROUP}/{VERSION}"
"""``apiVersion`` of all our objects."""
CAPI_GROUP: Final = "cluster.x-k8s.io"
"""Cluster API's group. The CA hard-codes some keys of it, whatever ``CAPI_GROUP`` it runs with."""
OWN_DOMAIN: Final = "nodewright.dev"
"""Prefix of names that are Nodewright's own and have no counterpart upstream."""
CATEGORY: Final = "nodewright"
"""``kubectl get nodewright`` lists all kinds. Not ``machines``: that would be ambiguous with other Machine groups."""
APPROVED_ANNOTATION: Final = "api-approved.kubernetes.io"
"""The API server refuses CRDs of a ``*.k8s.io`` group without it (KEP-1111)."""
APPROVED_VALUE: Final = "unapproved, KEP-3 legacy API"
"""What the annotation says: the group is real, its API was never reviewed as a CRD."""

SYSTEM_NAMESPACE: Final = "nodewright-system"
"""Namespace of the controllers as ``deploy/`` installs them, and of the Leases of all processes wherever they run."""

# --- reports of hosts that join -------------------------------------------------------------------------------------

BOOTSTRAP_NAMESPACE: Final = "nodewright-bootstrap"
"""Namespace, in the cluster where a Node will live, in which its host reports how far its bootstrap is."""
BOOTSTRAP_REPORTER: Final = "nodewright-bootstrap-reporter"
"""Role and RoleBinding of that namespace: bootstrap tokens of Nodewright may create Events there, and no more."""
REPORT_ANNOTATION: Final = "nodewright.dev/bootstrap-report"
"""On an Event of a host that joins: its report, as JSON."""
REPORT_SIGNATURE_ANNOTATION: Final = "nodewright.dev/bootstrap-report-signature"
"""Beside it: HMAC-SHA256 of the report with the secret of the host's bootstrap token, in hexadecimal digits."""

# --- finalizers -----------------------------------------------------------------------------------------------------

MACHINE_FINALIZER: Final = "machine.cluster.k8s.io"
"""On a Machine whose host may exist (release-0.1)."""
CLUSTER_FINALIZER: Final = "cluster.cluster.k8s.io"
"""On a Cluster (release-0.1)."""
FOREGROUND_FINALIZER: Final = "foregroundDeletion"
"""metav1: the object stays until its dependents that block deletion are gone; MC and release-0.1 add it to sets."""
ORPHAN_FINALIZER: Final = "orphan"
"""metav1: dependents lose their owner reference before the object goes."""
LEGACY_MACHINE_FINALIZER: Final = "machine-delete-finalizer"
"""MC: its host still exists. Removed together with ours after a take-over."""
LEGACY_NODE_FINALIZER: Final = "machine-node-delete-finalizer"
"""MC: its Node still exists. Removed together with ours after a take-over."""
LEGACY_MACHINE_FINALIZERS: Final = (LEGACY_MACHINE_FINALIZER, LEGACY_NODE_FINALIZER)
"""What a Machine taken over from MC may still carry."""

# --- labels ---------------------------------------------------------------------------------------------------------

CLUSTER_NAME_LABEL: Final = "cluster.k8s.io/cluster-name"
"""Links Machines and sets to a Cluster (release-0.1); the CA reads it with ``CAPI_GROUP=cluster.k8s.io``."""
TEMPLATE_HASH_LABEL: Final = "machine-template-hash"
"""On MachineSets of a MachineDeployment, in their selector and on their Machines (lineage)."""
MACHINESET_NAME_LABEL: Final = "cluster.k8s.io/set-name"
"""On a Machine: its MachineSet (CAPI: ``cluster.x-k8s.io/set-name``). Left out when the name is no label value."""
DEPLOYMENT_NAME_LABEL: Final = "cluster.k8s.io/deployment-name"
"""On MachineSets and Machines: their MachineDeployment. Left out when the name is no label value."""
CAPI_DEPLOYMENT_NAME_LABEL: Final = "cluster.x-k8s.io/deployment-name"
"""On MachineSets: the CA's rollout guard lists by this hard-coded key (autoscaler#8494)."""
CAPI_CLUSTER_NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
"""CAPI's form of CLUSTER_NAME_LABEL."""
SHARD_LABEL: Final = "machine.k8s.io/controller"
"""MC: on a Machine: only a process whose ``--machine-selector`` speaks of this label serves it."""
NODE_OWNED_BY_LABEL: Final = "machine-controller/owned-by"
"""MC, on a Node: UID of its Machine. Written with ``--node-owner-label`` only, see NODE_MACHINE_UID_ANNOTATION."""
CONTROL_PLANE_LABEL: Final = "node-role.kubernetes.io/control-plane"
"""On a Node of the control plane (kubeadm)."""
CONTROL_PLANE_NAME_LABEL: Final = "nodewright.dev/control-plane-name"
"""On a Machine: its ControlPlane. Left out when the name is no label value."""
LEGACY_MASTER_LABEL: Final = "node-role.kubernetes.io/master"
"""The same before Kubernetes 1.24."""

POD_DRAIN_LABEL: Final = "cluster.x-k8s.io/drain"
"""CAPI, on a Pod: ``skip`` lets it stay when its Node is drained, ``wait-completed`` waits until it ends by itself."""
OWN_POD_DRAIN_LABEL: Final = "nodewright.dev/drain"
"""Our form of POD_DRAIN_LABEL."""

# --- Secrets with which hosts join --------------------------------------------------------------------------------

BOOTSTRAP_SECRET_TYPE: Final = "nodewright.dev/bootstrap"
"""Type of the Secret beside a Machine that holds its bootstrap data."""
HOST_FILES_SECRET_TYPE: Final = "nodewright.dev/host-files"
"""Type of Secrets whose content ``spec.bootstrap.files`` may name. No other Secret is handed to a host."""
BOOTSTRAP_SUFFIX: Final = "-bootstrap"
"""Ends the name of that Secret: ``<machine>-bootstrap``, shortened to what a name may have."""
BOOTSTRAP_DATA_KEY: Final = "userData"
"""Its key with what the host gets."""
BOOTSTRAP_FORMAT_KEY: Final = "format"
"""Its key with the form of that: ``cloud-config`` or ``script``."""
BOOTSTRAP_TOKEN_KEY: Final = "token"
"""Its key with the bootstrap token, so that one that got lost is made again as it was."""
BOOTSTRAP_DIGEST_ANNOTATION: Final = "nodewright.dev/bootstrap-digest"
"""On that Secret: digest of all that it was made of but the token."""
TOKEN_SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"
"""Type of a bootstrap token's Secret (Kubernetes)."""
TOKEN_SECRET_PREFIX: Final = "bootstrap-token-"
"""Begins its name; the token's id follows (Kubernetes)."""
TOKEN_NAMESPACE: Final = "kube-system"
"""Its namespace (Kubernetes)."""
TOKEN_MACHINE_UID_LABEL: Final = "nodewright.dev/machine-uid"
"""On Secrets with which a host joins: UID of the Machine that they were made for."""
TOKEN_MANAGED_BY_LABEL: Final = "nodewright.dev/management-cluster"
"""On the Secret of a bootstrap token: UID of the Namespace ``kube-system`` of the cluster that holds its Machine."""
TOKEN_MACHINE_ANNOTATION: Final = "nodewright.dev/machine"
"""On the Secret of a bootstrap token: ``namespace/name`` of its Machine."""
KUBEADM_TOKEN_GROUP: Final = "system:bootstrappers:kubeadm:default-node-token"
"""Group of bootstrap tokens that may read kubeadm's ConfigMaps and ask for certificates (kubeadm)."""
OWN_TOKEN_GROUP: Final = "system:bootstrappers:nodewright"
"""Group of all bootstrap tokens that Nodewright makes."""
CONTROL_PLANE_MADE_BY: Final = "nodewright.dev/control-plane-made-by"
"""On the Secret of a cluster's CA: ``NAME/UID`` of the one Machine whose host runs ``kubeadm init``."""
MANAGED_KUBECONFIG_ANNOTATION: Final = "nodewright.dev/control-plane-kubeconfig"
"""On a kubeconfig Secret that was made for a control plane of Machines: ``true``."""
AUTHORITY_SECRET_TYPE: Final = "cluster.x-k8s.io/secret"
"""Type of the Secrets that hold a cluster's certificate authorities and kubeconfig (Cluster API's)."""

# --- annotations: Machines ------------------------------------------------------------------------------------------

DELETE_MACHINE_ANNOTATION: Final = "cluster.k8s.io/delete-machine"
"""On a Machine, any non-empty value: first victim of the next scale-down (release-0.1, CA)."""
CAPI_DELETE_MACHINE_ANNOTATION: Final = "cluster.x-k8s.io/delete-machine"
"""CAPI's form of it, honoured alike."""
BOOTSTRAP_TOKEN_ANNOTATION: Final = "nodewright.dev/bootstrap-token"
"""On a Machine whose host got bootstrap data: id of the bootstrap token with which it joins. The id is no secret."""
DELETE_PRIORITY_ANNOTATION: Final = "nodewright.dev/delete-priority"
"""On a Machine: an integer; a higher one is deleted earlier. 0 without it."""
ORDINAL_ANNOTATION: Final = "nodewright.dev/ordinal"
"""On a Machine: the ordinal in its MachineSet from which its name derives."""
PROPAGATED_ANNOTATION: Final = "nodewright.dev/propagated"
"""On a Machine: which labels, annotations and taints its MachineSet's template gave it, so that removal can follow."""
RELEASED_FROM_ANNOTATION: Final = "nodewright.dev/released-from"
"""On a Machine that left its MachineSet because its labels stopped matching: UID of that MachineSet."""
REMOVAL_ANNOTATION: Final = "nodewright.dev/removal"
"""On a CustomResourceDefinition that ``nodewright uninstall --crds`` deletes: how often it asked again, from 1."""
LEASE_HOLDER_ANNOTATION: Final = "nodewright.dev/lease-holder"
"""On a Lease of the controllers: its holder's process and what it serves, in JSON."""
LEASE_FINDINGS_ANNOTATION: Final = "nodewright.dev/lease-findings"
"""On a Lease of the controllers: its holder's version, accounts that pause, hosts without a Machine, in JSON."""
TEMPLATE_ANNOTATION: Final = "nodewright.dev/template"
"""On a Machine that was updated in place: digest of the template's ``spec`` that it was given last."""
MACHINE_CLASS_ANNOTATION: Final = "nodewright.dev/machine-class"
"""On a Machine of a MachineSet: digest of the MachineClass's configuration that it was given last. Its host follows
no other, so that an edit of the class reaches running hosts within the set's budget only."""
IN_PLACE_ANNOTATION: Final = "nodewright.dev/in-place"
"""On a Machine, ``Require``: its host is not replaced for the template that TEMPLATE_ANNOTATION names."""
PRESERVE_UNTIL_ANNOTATION: Final = "nodewright.dev/preserve-until"
"""On a failed Machine: RFC 3339 time until which it is kept for debugging; meanwhile its owner counts without it."""
NO_DRAIN_ANNOTATION: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
"""CAPI: the Machine's Node is not drained."""
OWN_NO_DRAIN_ANNOTATION: Final = "nodewright.dev/exclude-node-draining"
"""Our form of NO_DRAIN_ANNOTATION."""
ABANDON_HOST_ANNOTATION: Final = "nodewright.dev/abandon-host"
"""On a Machine that is being deleted though nobody knows whether its host exists: let go of it all the same."""
ABANDON_NODE_ANNOTATION: Final = "nodewright.dev/abandon-node"
"""On a Machine that is being deleted though its workload cluster can't be reached: its host goes without a drain, and
its Node object stays behind."""
NO_VOLUME_WAIT_ANNOTATION: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
"""CAPI: deletion does not wait for volumes to detach."""
OWN_NO_VOLUME_WAIT_ANNOTATION: Final = "nodewright.dev/exclude-wait-for-node-volume-detach"
"""Our form of NO_VOLUME_WAIT_ANNOTATION."""
ALLOW_SELF_DELETION_ANNOTATION: Final = "nodewright.dev/allow-self-deletion"
"""On the Machine on whose Node this controller runs: its host may go too, after all others that are going."""
PRE_DRAIN_HOOK_PREFIX: Final = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
"""CAPI: an annotation ``<prefix>/<name>`` holds deletion up before the drain."""
PRE_TERMINATE_HOOK_PREFIX: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
"""CAPI: an annotation ``<prefix>/<name>`` holds deletion up before the host goes."""
OWN_PRE_DRAIN_HOOK_PREFIX: Final = "pre-drain.nodewright.dev"
"""Our form of PRE_DRAIN_HOOK_PREFIX."""
OWN_PRE_TERMINATE_HOOK_PREFIX: Final = "pre-terminate.nodewright.dev"
"""Our form of PRE_TERMINATE_HOOK_PREFIX."""
CONTROL_PLANE_INIT: Final = "nodewright.dev/control-plane-init"
"""On a Machine with ``versions.controlPlane``, ``true``: its host runs ``kubeadm init``; every other one joins."""
CONTROL_PLANE_HOOK: Final = f"{OWN_PRE_TERMINATE_HOOK_PREFIX}/etcd-member"
"""On a Machine of a ControlPlane: its host stays until its etcd member was removed."""
CONTROL_PLANE_MEMBER: Final = "nodewright.dev/etcd-member"
"""On a Machine of a ControlPlane: id (hexadecimal) of its etcd member, once that was seen."""
RENEW_CERTIFICATES: Final = "nodewright.dev/renew-certificates"
"""On a Machine with ``versions.controlPlane``: each new value (a date, as a rule) has the certificates of its control
plane made anew on its host, and its static pods restarted. One Machine after the other."""
ETCD_SNAPSHOT: Final = "nodewright.dev/etcd-snapshot"
"""On a Machine with ``versions.controlPlane``: a snapshot of etcd is taken on its host before each upgrade, as
``KEEP:FOLDER`` (``3:/var/backups/etcd``): the last KEEP stay in FOLDER."""
CONTROL_PLANE_FINALIZER: Final = "nodewright.dev/control-plane"
"""On a ControlPlane: it goes after its Machines."""
CONTROL_PLANE_INIT_LOCK: Final = "nodewright.dev/control-plane-init-machine"
"""On a Cluster: name of the one Machine that may initialize it, and how often it was made, as ``name/1``. Written
before that Machine is made, and never changed to another."""
CONTROL_PLANE_INITIALIZED: Final = "nodewright.dev/control-plane-initialized"
"""On a Cluster: RFC 3339 time at which it was first seen to be initialized. It is never initialized again."""
SKIP_REMEDIATION_ANNOTATION: Final = "cluster.x-k8s.io/skip-remediation"
"""CAPI, on a Machine, any value: health checks leave it alone."""
REMEDIATE_ANNOTATION: Final = "cluster.x-k8s.io/remediate-machine"
"""CAPI, on a Machine, any value: it counts as unhealthy, whatever its Node says."""
REMEDIATION_FOR_ANNOTATION: Final = "nodewright.dev/remediation-for"
"""On a Machine made in place of an unhealthy one: JSON with its name (``machine``) and when this place's Machines were
replaced by a health check (``times``, oldest first). CAPI has the like on control-plane Machines."""
INITIALIZERS_ANNOTATION: Final = "machine-controller.kubermatic.io/initializers"
"""MC: the Machine is not touched while the value is non-empty."""
BYPASS_IMMUTABLE_ANNOTATION: Final = "kubermatic.io/bypass-no-spec-mutation-requirement"
"""MC: one-shot permission to change a Machine's spec. Ours may always be changed; the key is tolerated."""

CLOUDPOOL_MEMBERSHIP_ANNOTATION: Final = "nodewright.dev/cloudpool-membership-status"
"""On a Machine: JSON ``{"active": bool, "evictable": bool}``, what a cloudpool client said of its membership."""
CLOUDPOOL_DETACHED_FROM_ANNOTATION: Final = "nodewright.dev/cloudpool-detached-from"
"""On a Machine without an owner: UID of the cloudpool that is still to be one less for it, and a number."""
CLOUDPOOL_SERVICE_STATE_ANNOTATION: Final = "nodewright.dev/cloudpool-service-state"
"""On a Machine: what a cloudpool client said of the service on it; nothing follows from it."""

# --- annotations: Nodes ---------------------------------------------------------------------------------------------

NODE_MACHINE_ANNOTATION: Final = "cluster.k8s.io/machine"
"""On a Node: ``namespace/name`` of its Machine (release-0.1; the CA reads it)."""
CAPI_NODE_MACHINE_ANNOTATION: Final = "cluster.x-k8s.io/machine"
"""CAPI's form of it."""
NODE_MACHINE_UID_ANNOTATION: Final = "cluster.k8s.io/machine-uid"
"""On a Node: UID of its Machine. An annotation, because autoscalers compare the labels of Nodes."""
NODE_SKIP_EVICTION_ANNOTATION: Final = "kubermatic.io/skip-eviction"
"""MC, on a Node: it is not drained."""
NODE_CORDONED_FOR_ANNOTATION: Final = "nodewright.dev/cordoned-for"
"""On a Node: UID of the Machine for which we cordoned it, so that a person's own cordon is never taken back."""
DRAINING_TAINT: Final = "nodewright.dev/draining"
"""Taint (NoSchedule) on a Node while it is drained, beside its cordon; the value is the UID of its Machine."""
SCALE_DOWN_DISABLED_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
"""CA, on a Node: never a scale-down candidate while ``true``."""

TO_BE_DELETED_TAINT: Final = "ToBeDeletedByClusterAutoscaler"
"""CA: taint (NoSchedule) on a Node that is drained and then given back; the value is since when, in seconds (Unix)."""
FAKE_NODE_REASON: Final = "k8s.io/cluster-autoscaler/fake-node-reason"
"""CA, in calls to a provider: the Node stands for an instance without one (``unregistered``, ``create-error``)."""
STARTUP_TAINT_PREFIXES: Final = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
"""CA: a taint whose key begins so is on a Node while it starts, and goes by itself."""
STARTUP_TAINTS: Final = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cluster.x-k8s.io/uninitialized",
    "node.cilium.io/agent-not-ready",
    "cni.istio.io/not-ready",
    "ebs.csi.aws.com/agent-not-ready",
    "efs.csi.aws.com/agent-not-ready",
    "fsx.csi.aws.com/agent-not-ready",
    "disk.csi.azure.com/agent-not-ready",
    "file.csi.azure.com/agent-not-ready",
    "skyhook.nvidia.com",
)
"""Taints that Kubernetes, network plugins, storage drivers and operators of GPUs set on a Node while it starts."""

CLOUDPOOL_SCALE_DOWN_ANNOTATION: Final = "nodewright.dev/cloudpool-scale-down"
"""On a Node: JSON that says which cloudpool proxy is taking its machine away, since when, and how far it is."""
CLOUDPOOL_TAINT: Final = "node-about-to-be-drained"
"""Taint (NoSchedule, ``true``) on a Node that a cloudpool proxy empties, under the name that its clients know."""

# --- annotations: MachineSets and MachineDeployments ----------------------------------------------------------------

REVISION_ANNOTATION: Final = "machinedeployment.clusters.k8s.io/revision"
"""Lineage (plural ``clusters``): number of the template's revision, on MachineSets and their MachineDeployment."""
REVISION_HISTORY_ANNOTATION: Final = "machinedeployment.clusters.k8s.io/revision-history"
"""Lineage: earlier numbers of a MachineSet that became current again, comma separated."""
DESIRED_REPLICAS_ANNOTATION: Final = "machinedeployment.clusters.k8s.io/desired-replicas"
"""Lineage: replicas of the MachineDeployment when its MachineSet was last scaled."""
MAX_REPLICAS_ANNOTATION: Final = "machinedeployment.clusters.k8s.io/max-replicas"
"""Lineage: the same plus the surge; proportional scaling divides by it."""
CAPI_REVISION_ANNOTATION: Final = "machinedeployment.clusters.x-k8s.io/revision"
"""Same number for the CA's rollout guard, which hard-codes this key (autoscaler#8494)."""
PAUSED_ANNOTATION: Final = "nodewright.dev/paused"
"""On any of our objects, any value: controllers leave it alone."""
CAPI_PAUSED_ANNOTATION: Final = "cluster.x-k8s.io/paused"
"""CAPI and CA (hard-coded): the same; the CA hides a paused node group."""
MOVING_ANNOTATION: Final = "nodewright.dev/moving"
"""On an object that ``nodewright move`` copies, at the source and at the target: the move's id. Pauses it like
PAUSED_ANNOTATION; the command takes it away."""
PAUSED_ANNOTATIONS: Final = (MOVING_ANNOTATION, PAUSED_ANNOTATION, CAPI_PAUSED_ANNOTATION)
"""Any of them pauses an object."""
TOUCHED_ANNOTATION: Final = "nodewright.dev/touched"
"""On a MachineSet: written only to learn whether a decided size was applied."""
RESTARTED_AT_ANNOTATION: Final = "nodewright.dev/restartedAt"
"""In a template's metadata: RFC 3339 time of a requested restart; a change of it is a new revision."""
REMOVED_MACHINES_ANNOTATION: Final = "nodewright.dev/removed-machines"
"""On a MachineDeployment or MachineSet: names, comma separated, of the Machines for which ``nodewright gateway
externalgrpc`` has lowered ``replicas``. Written with them in one patch, so that no repeat lowers them again."""
CLOUDPOOL_SET_ASIDE_ANNOTATION: Final = "nodewright.dev/cloudpool-set-aside"
"""On a MachineDeployment or MachineSet: names, comma separated, of Machines that cloudpool clients have set aside;
``replicas`` is one more for each. Written with them in one patch."""
CLOUDPOOL_DETACHED_ANNOTATION: Final = "nodewright.dev/cloudpool-detached"
"""On a MachineDeployment or MachineSet: the Machine that was last detached, for which ``replicas`` is one less."""
ROLLOUT_AFTER_ANNOTATION: Final = "nodewright.dev/rollout-after"
"""In a MachineSet's template: the ``spec.rollout.after`` of its MachineDeployment for which it was made."""
DISABLE_CREATE_ANNOTATION: Final = "cluster.x-k8s.io/disable-machine-create"
"""CAPI, on a MachineSet: it creates no Machines (old sets under OnDelete)."""
NOT_COPIED_ANNOTATIONS: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION_ANNOTATION,
        REVISION_HISTORY_ANNOTATION,
        DESIRED_REPLICAS_ANNOTATION,
        MAX_REPLICAS_ANNOTATION,
        CAPI_REVISION_ANNOTATION,
        REMOVED_MACHINES_ANNOTATION,
        CLOUDPOOL_SET_ASIDE_ANNOTATION,
        CLOUDPOOL_DETACHED_ANNOTATION,
    }
)
"""A MachineDeployment's annotations that its MachineSets don't inherit (lineage)."""

# --- Secrets --------------------------------------------------------------------------------------------------------

KUBECONFIG_SUFFIX: Final = "-kubeconfig"
"""CAPI: the Secret ``<cluster>-kubeconfig`` in a Cluster's namespace says how its own API is reached."""
KUBECONFIG_KEY: Final = "value"
"""CAPI: key of that Secret under which the kubeconfig lies."""
KUBECONFIG_OTHER_KEY: Final = "kubeconfig"
"""The same key as others name it; read if there is no ``value``."""
KUBECONFIG_KEYS: Final = (KUBECONFIG_KEY, KUBECONFIG_OTHER_KEY)
"""Both, in the order in which they are read."""

# --- autoscaler -----------------------------------------------------------------------------------------------------

AUTOSCALER_MIN_ANNOTATION: Final = "cluster.k8s.io/cluster-api-autoscaler-node-group-min-size"
"""CA with ``CAPI_GROUP=cluster.k8s.io``: lower bound of a node group; 0 without it."""
AUTOSCALER_MAX_ANNOTATION: Final = "cluster.k8s.io/cluster-api-autoscaler-node-group-max-size"
"""CA with ``CAPI_GROUP=cluster.k8s.io``: upper bound of a node group; 0: it is none."""
CAPI_AUTOSCALER_MIN_ANNOTATION: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
"""The lower bound in CAPI's family, read when ours is absent."""
CAPI_AUTOSCALER_MAX_ANNOTATION: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
"""The upper bound in CAPI's family, read when ours is absent."""
AUTOSCALER_BOUNDS: Final = (
    (AUTOSCALER_MIN_ANNOTATION, AUTOSCALER_MAX_ANNOTATION),
    (CAPI_AUTOSCALER_MIN_ANNOTATION, CAPI_AUTOSCALER_MAX_ANNOTATION),
)
"""(min, max) keys of both families, in the order in which they are read."""
AUTOSCALING_OPTIONS_PREFIX: Final = "cluster.k8s.io/autoscaling-options-"
"""CA: options of one node group (utilisation threshold, unneeded time, …)."""
CAPI_AUTOSCALING_OPTIONS_PREFIX: Final = "cluster.x-k8s.io/autoscaling-options-"
"""The same in CAPI's family, read where ours is absent."""
AUTOSCALING_OPTIONS_PREFIXES: Final = (AUTOSCALING_OPTIONS_PREFIX, CAPI_AUTOSCALING_OPTIONS_PREFIX)
"""Both, in the order in which they are read."""
NODE_GROUP_ANNOTATION: Final = "nodewright.dev/node-group"
"""On the template Node that the gRPC gateway gives to the CA: id of its node group, by which it asks for a price."""
CAPACITY_PREFIX: Final = "capacity.cluster-autoscaler.kubernetes.io/"
"""CA: what a Node of a group that is empty would offer."""
CAPACITY_CPU_ANNOTATION: Final = f"{CAPACITY_PREFIX}cpu"
"""Quantity; needed, with memory, for scaling from zero."""
CAPACITY_MEMORY_ANNOTATION: Final = f"{CAPACITY_PREFIX}memory"
"""Quantity; needed, with cpu, for scaling from zero."""
CAPACITY_DISK_ANNOTATION: Final = f"{CAPACITY_PREFIX}ephemeral-disk"
"""Quantity of ephemeral storage."""
CAPACITY_GPU_TYPE_ANNOTATION: Final = f"{CAPACITY_PREFIX}gpu-type"
"""Resource name of the GPU, like ``nvidia.com/gpu``."""
CAPACITY_GPU_COUNT_ANNOTATION: Final = f"{CAPACITY_PREFIX}gpu-count"
"""Number of GPUs."""
CAPACITY_MAX_PODS_ANNOTATION: Final = f"{CAPACITY_PREFIX}maxPods"
"""Pods per Node; the CA takes 110 without it."""
CAPACITY_LABELS_ANNOTATION: Final = f"{CAPACITY_PREFIX}labels"
"""``key=value`` pairs, comma separated."""
CAPACITY_TAINTS_ANNOTATION: Final = f"{CAPACITY_PREFIX}taints"
"""``key=value:effect`` triples, comma separated."""
KUBELET_CONFIG_PREFIX: Final = "v1.kubelet-config.machine-controller.kubermatic.io/"
"""machine-controller: how a group's kubelets are set up, on it or its template. Here it says what Nodes will offer."""
KUBE_RESERVED_ANNOTATION: Final = f"{KUBELET_CONFIG_PREFIX}KubeReserved"
"""``resource=quantity`` pairs, comma separated: the kubelet's ``--kube-reserved``."""
SYSTEM_RESERVED_ANNOTATION: Final = f"{KUBELET_CONFIG_PREFIX}SystemReserved"
"""``resource=quantity`` pairs, comma separated: the kubelet's ``--system-reserved``."""
EVICTION_HARD_ANNOTATION: Final = f"{KUBELET_CONFIG_PREFIX}EvictionHard"
"""``signal<quantity`` or ``signal<percent%``, comma separated: the kubelet's ``--eviction-hard``."""
KUBELET_MAX_PODS_ANNOTATION: Final = f"{KUBELET_CONFIG_PREFIX}MaxPods"
"""Pods per Node: the kubelet's ``--max-pods``; ``capacity.cluster-autoscaler.kubernetes.io/maxPods`` goes before it."""
AUTOPROVISION_ANNOTATION: Final = "nodewright.dev/autoprovision"
"""On a MachineClass: the autoscaler may make MachineDeployments of it; YAML that says how many Nodes, with what."""
AUTOPROVISIONED_ANNOTATION: Final = "nodewright.dev/autoprovisioned"
"""On a MachineDeployment that the autoscaler made: its MachineClass and its own name, so that no copy counts as one."""
CONSOLIDATION_ANNOTATION: Final = "nodewright.dev/consolidation"
"""On a node group: one Node of it is to take the place of others; which ones the autoscaler remembers by this id."""
AUTOPROVISIONED_LABEL: Final = "nodewright.dev/autoprovisioned-group"
"""On the Machines of such a MachineDeployment: its name."""
AUTOSCALER_STATUS: Final = "cluster-autoscaler-status"
"""ConfigMap (CA): key ``status`` says in YAML how the autoscaler and its groups are; with ``.NAMESPACE.NAME`` behind it
where it is for one Cluster."""
AUTOSCALER_MEMORY: Final = "nodewright-autoscaler"
"""ConfigMap: key ``memory`` holds what the autoscaler must not forget over a restart; named as the status is."""
AUTOSCALER_PRIORITIES: Final = "cluster-autoscaler-priority-expander"
"""ConfigMap (CA): key ``priorities`` is a YAML map from a number to patterns of group ids; the highest goes first."""
AUTOSCALER_PRICES: Final = "nodewright-autoscaler-prices"
"""ConfigMap: key ``prices`` is a YAML table of what Nodes cost, for the expander ``price``."""
AUTOSCALER_LEASE: Final = "cluster-autoscaler"
"""Lease (CA): while somebody holds it, our autoscaler does nothing."""
AUTOSCALER_LAST_UPDATED_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/last-updated"
"""CA, on the ConfigMap with the status: when it was written."""

# Enumerations of phases and policies; the fields that take them show their values.


class MachinePhase(StrEnum):
    """``status.phase`` of a Machine: for people and for the CA; CAPI's words. Controllers never read it back."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    RUNNING = "Running"
    UPDATING = "Updating"
    DELETING = "Deleting"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class ClusterPhase(StrEnum):
    """``status.phase`` of a Cluster; CAPI's words."""

    PENDING = "Pending"
    PROVISIONING = "Provisioning"
    PROVISIONED = "Provisioned"
    DELETING = "Deleting"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class DeletePolicy(StrEnum):
    """Which of equally good victims goes first (lineage). ``Random`` means: by lot, drawn from the UID.

    ``LeastDisruptive`` is ours: the one whose pods find a place elsewhere, within their budgets; the least used first.
    """

    RANDOM = "Random"
    NEWEST = "Newest"
    OLDEST = "Oldest"
    LEAST_DISRUPTIVE = "LeastDisruptive"


class StrategyType(StrEnum):
    """How a MachineDeployment replaces Machines of an old template."""

    ROLLING_UPDATE = "RollingUpdate"
    ON_DELETE = "OnDelete"
    RECREATE = "Recreate"


class OnFailure(StrEnum):
    """What a rollout does when ``progressDeadlineSeconds`` has passed without progress."""

    CONTINUE = "Continue"
    PAUSE = "Pause"
    ROLLBACK = "Rollback"


class InPlace(StrEnum):
    """Whether a rollout changes Machines instead of replacing them, and what follows where a host can't be changed."""

    NEVER = "Never"
    PREFER = "Prefer"
    REQUIRE = "Require"


class DisruptionReason(StrEnum):
    """What a disruption budget may limit."""

    REPLACE = "Replace"
    IN_PLACE_UPDATE = "InPlaceUpdate"


class ErrorReason(StrEnum):
    """``status.errorReason`` (lineage): terminal only, needs a person or another spec."""

    INVALID_CONFIGURATION = "InvalidConfiguration"
    UNSUPPORTED_CHANGE = "UnsupportedChange"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    CREATE_ERROR = "CreateError"
    UPDATE_ERROR = "UpdateError"
    DELETE_ERROR = "DeleteError"
    JOIN_CLUSTER_TIMEOUT = "JoinClusterTimeoutError"


class OperationState(StrEnum):
    """``status.lastOperation.state`` (lineage)."""

    PROCESSING = "Processing"
    SUCCESSFUL = "Successful"
    FAILED = "Failed"


class OperationType(StrEnum):
    """``status.lastOperation.type`` (lineage)."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"

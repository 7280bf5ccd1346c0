"""What a person can do about a condition reason. Reasons that heal by themselves say so."""

from __future__ import annotations

from typing import Final

from api.conditions import Reason
from providers.base.errors import ErrorClass

_BY_CLASS: Final[dict[ErrorClass, str]] = {
    ErrorClass.QUOTA_EXCEEDED: "Free or raise the quota, or scale down; creation is tried again by itself.",
    ErrorClass.STOCK_OUT: "Wait, or choose another size or failure domain in providerConfig.",
    ErrorClass.UNSUPPORTED_CHANGE: "Undo the change, or delete the Machine so that its set makes a new one.",
    ErrorClass.UNAUTHORIZED: "Renew the provider's credentials (Secret or environment of the controllers).",
    ErrorClass.RATE_LIMITED: "Nothing: calls go on when the provider allows them.",
    ErrorClass.UNAVAILABLE: "See whether the provider's API is up; calls go on by themselves.",
    ErrorClass.TIMEOUT: "Nothing yet: it is looked at again before anything is done twice.",
    ErrorClass.CONFLICT: "Nothing: the host is busy; it is tried again.",
    ErrorClass.NOT_FOUND: "Check the names in providerConfig (image, network, flavor).",
    ErrorClass.INTERNAL: "Look into the provider's log; it is tried again by itself.",
}

_BY_REASON: Final[dict[str, str]] = {
    **{str(error_class): text for error_class, text in _BY_CLASS.items()},
    Reason.HOST_MISSING: "The host vanished: delete the Machine, its set makes a new one.",
    Reason.NODE_MISSING: "The Node object is gone: see whether the kubelet on the host can reach the API server.",
    Reason.NODE_NOT_READY: "See the Node's own conditions: `kubectl describe node`.",
    Reason.NODE_CONFLICT: "Several Nodes claim this host: delete the Node objects that are left over.",
    Reason.PROVIDER_UNKNOWN: "Install the provider's package, or correct apiVersion and kind of providerConfig.",
    Reason.PROVIDER_UNREACHABLE: "See whether the provider's API is up; nothing is changed meanwhile.",
    Reason.INVALID_CONFIGURATION: "Correct the field named (`nodewright validate FILE` names every fault).",
    Reason.UNKNOWN_FIELD: "Correct the field's name; `nodewright validate FILE` names it before it is applied.",
    Reason.ETCD_QUORUM_LOST: "Repair the hosts of the members named, or restore a snapshot of etcd.",
    Reason.SNAPSHOT_FAILED: "Correct what the message names: a Secret, bucket or host; the rollout goes on by itself.",
    Reason.CERTIFICATES_EXPIRING: "Upgrade the control plane, or renew them (docs/tasks/cluster-certificates.md).",
    Reason.CERTIFICATE_EXPIRED: "Renew it on its host: `kubeadm certs renew all`, then restart the static pods.",
    Reason.MACHINE_CLASS_NOT_FOUND: "Create the MachineClass, or correct the reference.",
    Reason.READINESS_GATE_FAILED: "See the condition that the readiness gate names.",
    Reason.DRAIN_BLOCKED: "Give the PodDisruptionBudget room, or set spec.nodeDrainTimeout.",
    Reason.DELETING_HOST: "Nothing yet: the provider still lists the host. If this lasts, see the provider's console.",
    Reason.WAITING_FOR_VOLUME_DETACH: "See the VolumeAttachments of its Node, or set spec.nodeVolumeDetachTimeout.",
    Reason.HOSTS_CONTROLLER: "Move the controller to another Node, or annotate the Machine as the message says.",
    Reason.WAITING_FOR_HOOK: "The owner of the hook has to remove its annotation.",
    Reason.CEILING_REACHED: "Machines were relabelled away from their set: put their labels back or delete them.",
    Reason.PROGRESS_DEADLINE_EXCEEDED: "See the Machines below; `nodewright rollout undo` goes back.",
    Reason.ROLLED_BACK: "Correct spec.template, or `nodewright rollout undo` to write what is in force into it.",
    Reason.NEEDS_REPLACEMENT: "`nodewright rollout undo` goes back; inPlace: Prefer lets hosts be replaced.",
    Reason.UPDATE_FAILED: "Its host went back and serves: name another version, the one before or a later patch.",
    Reason.MACHINES_PROTECTED: "Set evictable to true over the cloudpool API, or delete the Machines named.",
    Reason.UNREACHABLE: "See whether that cluster's API server is up and its kubeconfig Secret current.",
    Reason.INVALID_KUBECONFIG: "Correct the Secret; the message names the key and the field.",
    Reason.KUBECONFIG_MISSING: "Put the Secret back; without it nothing is done about this cluster's Nodes.",
    Reason.CONNECTION_DOWN: "See the Cluster's condition Reachable; work goes on when its API answers.",
    Reason.UNHEALTHY_NODE: "Its owner replaces it if a health check allows that.",
    Reason.UNHEALTHY_MACHINE: "Its owner replaces it if a health check allows that.",
    Reason.REMEDIATION_DEFERRED: "Do away with what the message names; the Machine is replaced then.",
    Reason.NODE_STARTUP_TIMEOUT: "The host never joined: see its console and its way to the API server.",
    Reason.TOO_MANY_UNHEALTHY: "Too many Machines look bad at once: look for a common cause first.",
    Reason.CORRELATED_FAILURES: "Machines fail together: look for a common cause (zone, network, API server).",
    Reason.HOST_FAILED: "See the host in the provider's console; delete the Machine, its set makes a new one.",
    Reason.HOST_STOPPED: "Switch the host on, or delete the Machine, its set makes a new one.",
    Reason.MACHINE_FAILED: "See the Machine's own conditions; delete it, its set makes a new one.",
    Reason.TEMPLATE_FAILS: "Correct spec.template, or delete the Machine that failed so that it is tried again.",
    Reason.MALFORMED_SPEC: "Correct the fields named; nothing but deletion happens until then.",
    Reason.RECONCILE_FAILED: "It is tried again; report it with what the log of the controllers says.",
    Reason.NOT_ALLOWED: "Take the label or taint away, or have it allowed (--allow-node-labels, --allow-node-taints).",
    Reason.REBOOT_FAILED: "Do what the message says; after the last attempt the Machine is replaced.",
    Reason.HOST_DRIFTED: "Undo it on the host, or delete the Machine; a health check may reboot it (HostDrifted).",
    Reason.REMEDIATION_KIND_NOT_ALLOWED: "List the template's kind in --remediation-kinds.",
    Reason.NO_ENDPOINT: "Set the field that the message names.",
    Reason.INVALID_BOOTSTRAP_SPEC: "Correct the field that the message names.",
    Reason.INVALID_CERTIFICATE_AUTHORITY: "Put a CA there that is valid now; the message says where it is read.",
    Reason.VERSION_SKEW: "Ask for a kubelet that is not newer and at most 3 minor versions older than the API server.",
    Reason.FORMAT_NOT_SUPPORTED: "Take spec.bootstrap away, or choose a provider that hands bootstrap data on.",
    Reason.SECRET_CONFLICT: "Rename or delete the Secret that the message names.",
    Reason.TOKEN_REFUSED: "Grant the controllers what the message names (deploy/).",
    Reason.WORKLOAD_UNREACHABLE: "See the Cluster's condition Reachable; it goes on when its API answers.",
    Reason.DATA_TOO_LARGE: "Make spec.bootstrap smaller: let a command fetch large files.",
    Reason.JOIN_FAILED: "Mend what the message names, then delete the Machine, its set makes a new one.",
    Reason.JOIN_TIMED_OUT: "Read the host's console: it reported nothing. Then check its way to the API server.",
    Reason.PACKAGE_UNAVAILABLE: "Ask for a version that the repository has, or correct the mirror.",
    Reason.CHECKSUM_MISMATCH: "See what the mirror serves; correct the checksum only if you trust the file.",
    Reason.MIRROR_UNREACHABLE: "See the host's network, and the mirror that the message names.",
    Reason.VERSION_MISMATCH: "Correct spec.versions, or choose an image that has them.",
    Reason.PREFLIGHT_FAILED: "Mend on the image what the checks name, then delete the Machine.",
    Reason.CREATION_DISABLED: "Remove the annotation that the message names to let Machines be made.",
    Reason.PARTITION_REACHED: "Lower spec.strategy.rollingUpdate.partition to go on.",
    Reason.BUDGET_CLOSED: "Nothing: it goes on when the budget opens; the message says when.",
    Reason.FAILURE_DOMAIN_EXHAUSTED: "Nothing: Machines go elsewhere meanwhile; or have the domain restocked.",
    Reason.BACKED_OFF: "Nothing: the group is tried again; the Machines' reasons say why it did not grow.",
    Reason.HOSTS_IN_FLIGHT: "Nothing: its turn comes; or raise the limit that the message names.",
    Reason.CLASS_HOSTS_IN_FLIGHT: "Nothing: its turn comes; or raise the limit of the MachineClass.",
    Reason.PAUSED: "Remove the pause (spec.paused or the annotation) to go on.",
}


def advice_for(reason: str) -> str:
    """What to do about ``reason``; "" if nothing is known or needed."""
    return _BY_REASON.get(reason, "")

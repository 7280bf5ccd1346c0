"""Names of ProvisioningRequests: their group, classes, annotations of pods, details of their status and limits.

"CA" is the Cluster Autoscaler.
"""

from __future__ import annotations

from typing import Final

# --- provisioning requests ------------------------------------------------------------------------------------------

PROVISIONING_GROUP: Final = "autoscaling.x-k8s.io"
"""CA: API group of ProvisioningRequests."""
PROVISIONING_API_VERSION: Final = f"{PROVISIONING_GROUP}/v1"
"""CA: the version that is stored; v1beta1 is served too, with the same fields."""
CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
"""Provisioning class (CA): book room that is there."""
ATOMIC_SCALE_UP: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""Provisioning class (CA): add the Nodes that are missing, all or none."""
PROPOSED_CHECK_CAPACITY: Final = "check-capacity.kubernetes.io"
"""The first one as the proposal named it; means the same."""
PROPOSED_ATOMIC_SCALE_UP: Final = "atomic-scale-up.kubernetes.io"
"""The second one as the proposal named it; means the same."""
RESERVED_CLASS_SUFFIXES: Final = (".autoscaling.x-k8s.io", ".kubernetes.io")
"""Provisioning classes that end so are the project's own: one that nobody knows is a mistake."""
CONSUME_REQUEST_ANNOTATION: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
"""CA, on a pod: it takes room that this ProvisioningRequest of its namespace booked; no Node is added for it."""
CA_CONSUME_REQUEST_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
"""The same by its former name, read when the present one is absent."""
CLASS_NAME_ANNOTATION: Final = "autoscaling.x-k8s.io/provisioning-class-name"
"""CA, on such a pod: the class of the request."""
CA_CLASS_NAME_ANNOTATION: Final = "cluster-autoscaler.kubernetes.io/provisioning-class-name"
"""The same by its former name."""
PROVISIONING_CLASSES: Final = "nodewright-provisioning-classes"
"""ConfigMap: defaults of provisioning classes, one key per class: parameters and time limits, in YAML."""
BOOKED_NODES_DETAIL: Final = "BookedNodes"
"""Detail of a request: names of the Nodes on which its pods have room. Long lists go on in ``BookedNodes-1``."""
NODE_GROUPS_DETAIL: Final = "NodeGroups"
"""Detail of a request: by how many Nodes which group was to grow for it, like ``MachineDeployment/default/a=300``."""
PROVISIONING_SINCE_DETAIL: Final = "ProvisioningSince"
"""Detail of a request: when the Nodes that are on their way for it were asked for."""
LEAVING_MACHINES_DETAIL: Final = "LeavingMachines"
"""Detail of a request that is rolled back: Machines that were made for it and go, as ``namespace/name``."""
RETRIES_DETAIL: Final = "Retries"
"""Detail of a request: how often it was tried in vain."""
RETRY_AFTER_DETAIL: Final = "RetryAfter"
"""Detail of a request: when it is tried again."""
MAX_POD_SETS: Final = 32
"""Pod sets of a ProvisioningRequest."""
MAX_PODS_OF_SET: Final = 16384
"""Pods of one of its sets."""
MAX_DETAILS: Final = 64
"""Entries of its ``status.provisioningClassDetails``."""
MAX_DETAIL: Final = 32768
"""Characters of one such entry."""

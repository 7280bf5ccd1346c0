"""Names of CapacityBuffers and CapacityQuotas: their versions, strategies, conditions and limits.

"CA" is the Cluster Autoscaler, whose kinds they are.
"""

from __future__ import annotations

from typing import Final

from api.provisioning_names import PROVISIONING_GROUP

# --- capacity buffers and quotas ------------------------------------------------------------------------------------

CAPACITY_VERSION: Final = "v1beta1"
"""CA: the version of both kinds that is stored; v1alpha1 is served too, with the same fields."""
CAPACITY_API_VERSION: Final = f"{PROVISIONING_GROUP}/{CAPACITY_VERSION}"
"""CA: group and version of both kinds."""
ACTIVE_CAPACITY: Final = "buffer.x-k8s.io/active-capacity"
"""Strategy of a CapacityBuffer (CA): room on Nodes that run. No other one is served."""
MAX_CHUNKS: Final = 10_000
"""Chunks that one CapacityBuffer holds at most; its message says when it asks for more."""
MAX_QUOTA_RESOURCES: Final = 20
"""Resources that one CapacityQuota limits at most (CA)."""
QUOTA_NODES: Final = "nodes"
"""Resource of a CapacityQuota (CA): the number of Nodes."""

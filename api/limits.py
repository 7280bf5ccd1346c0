"""How long names may be, and how many of something one object may ask for."""

from __future__ import annotations

from typing import Final

# --- limits ---------------------------------------------------------------------------------------------------------

MAX_LABEL_VALUE: Final = 63
"""Characters in a label value (Kubernetes). Names that are stamped as label values must fit."""
MAX_NODE_NAME: Final = 63
"""A Machine's name becomes a host name, and one DNS label has 63 characters at most (RFC 1123)."""
MAX_OBJECT_NAME: Final = 253
"""Characters in an object's name (DNS subdomain)."""
OWNER_DIGEST_LENGTH: Final = 5
"""Characters that a Machine's name takes from its MachineSet's UID."""
MAX_ORDINAL_DIGITS: Final = 6
"""Digits of an ordinal: a MachineSet may make 999 999 Machines in its life."""
MAX_TEMPLATE_HASH_LENGTH: Final = 10
"""Characters of TEMPLATE_HASH_LABEL (an encoded 32-bit number in the lineage)."""
MAX_MACHINESET_NAME: Final = MAX_NODE_NAME - OWNER_DIGEST_LENGTH - MAX_ORDINAL_DIGITS - 2
"""So that ``<machineset>-<5>-<ordinal>`` is a valid Node name: 50."""
MAX_REPLICAS: Final = 100_000
"""Machines that a MachineSet or MachineDeployment may ask for; a slip of the finger asks for more."""
MAX_FAILURE_DOMAINS: Final = 32
"""Failure domains that a Cluster or a set may name."""
MAX_MACHINEDEPLOYMENT_NAME: Final = MAX_MACHINESET_NAME - MAX_TEMPLATE_HASH_LENGTH - 1
"""So that ``<machinedeployment>-<hash>`` is a valid MachineSet name: 39."""

# --- bootstrap --------------------------------------------------------------------------------------------------------

MAX_BOOTSTRAP_BYTES: Final = 64 * 1024
"""Bytes of a whole ``spec.bootstrap`` as JSON. What a provider takes as user data is often less."""
MAX_BOOTSTRAP_FILES: Final = 64
"""Files that ``spec.bootstrap`` may put on a host."""
MAX_BOOTSTRAP_FILE: Final = 32 * 1024
"""Characters of one such file, and of a patch for kubeadm."""
MAX_BOOTSTRAP_COMMANDS: Final = 32
"""Commands in one list of ``spec.bootstrap``."""
MAX_BOOTSTRAP_SCRIPT: Final = 16 * 1024
"""Characters of one script in ``spec.bootstrap``."""
MAX_BOOTSTRAP_KEY: Final = 16 * 1024
"""Characters of a signing key or a CA certificate in ``spec.bootstrap``."""
MAX_KUBELET_CONFIGURATION_VALUES: Final = 1_000
"""Values in ``spec.bootstrap.kubeletConfiguration``."""

# --- text of others ---------------------------------------------------------------------------------------------------

MAX_TEXT_BYTES: Final = 1024 * 1024
"""Bytes of a YAML or JSON text of others where nothing smaller is said: as large as a Secret or ConfigMap can be."""
MAX_TEXT_DEPTH: Final = 64
"""Levels of nesting in such a text."""
MAX_TEXT_VALUES: Final = 20_000
"""Values (scalars, lists and maps, keys too) in such a text."""
MAX_PROVIDER_CONFIG: Final = 32 * 1024
"""Characters of a provider's configuration given as text, and bytes as JSON of one given as an object."""
MAX_PROVIDER_CONFIG_VALUES: Final = 2_000
"""Values in a provider's configuration."""
MAX_PARSED_CONFIG_BYTES: Final = 8 * 1024 * 1024
"""Memory for configurations given as text that were parsed before."""

# --- providers of node groups (externalgrpc) --------------------------------------------------------------------------

MAX_PROVIDER_GROUPS: Final = 2_000
"""Node groups that a provider may tell; an answer with more is refused."""
MAX_PROVIDER_INSTANCES: Final = 50_000
"""Instances of one node group that a provider may tell."""
MAX_PROVIDER_ID: Final = 1_024
"""Characters of the id of a node group or an instance."""
MAX_PROVIDER_SIZE: Final = 100_000
"""Largest size of a node group that a provider may tell: as MAX_REPLICAS."""
MAX_PROVIDER_MESSAGE: Final = 16 * 1024 * 1024
"""Bytes of one answer of a provider."""
MAX_PROVIDER_NODE: Final = 256 * 1024
"""Bytes of the template Node of a node group."""
MAX_PROVIDER_ENTRIES: Final = 256
"""Labels, taints or resources of such a Node."""
MAX_PROVIDER_TEXT: Final = 256
"""Characters of a provider's error that are passed on to users."""
MAX_PROVIDER_SECONDS: Final = 365 * 86_400
"""Seconds that a provider may want a Node to be waited for."""

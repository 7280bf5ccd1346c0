"""Why no API server takes ``spec.addons`` of a Cluster (ADR 0064)."""

from typing import Final

ADDONS_IN_FILES_ONLY: Final = (
    "add-ons are applied by `nodewright create cluster`, from files; no controller acts on them"
)
"""The message of the rule in the CRD. Who reads files leaves that rule out."""

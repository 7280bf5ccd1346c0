"""``spec.bootstrap``: how hosts become Nodes by themselves. On a Cluster: defaults; on a Machine: what differs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from api.meta import Duration
from api.model import Model


class BootstrapSpec(Model):
    """What a host needs to join. Present, even empty, on a Machine or its Cluster, it asks for bootstrap data.

    No field has a default in the schema: an API server would write it into templates, and a new one would be a new
    revision of each.
    """

    endpoint: Annotated[str, Field(max_length=253, pattern=r"^(https://[A-Za-z0-9.:\[\]-]+)?$")] | None = None
    """URL of the API server as hosts reach it, like ``https://10.0.0.1:6443``. Without it the Cluster's
    ``status.apiEndpoints`` count, then what the cluster says of itself."""
    mirror: Annotated[str, Field(max_length=1024, pattern=r"^(https?://\S+)?$")] | None = None
    """Base URL from which kubelet and kubeadm are installed, with the layout of dl.k8s.io. Without it the image has to
    bring them."""
    architecture: Literal["amd64", "arm64", "ppc64le", "s390x"] | None = None
    """Of the host's processor; amd64 without it."""
    ignore_preflight_errors: Annotated[list[Annotated[str, Field(max_length=63)]], Field(max_length=16)] | None = None
    """Checks of kubeadm that may fail, by their names."""
    join_timeout: Duration | None = None
    """How long a host may take to join after it was made; ``20m`` without it. After that the Machine's condition
    ``NodeJoined`` has the reason ``JoinTimedOut``."""

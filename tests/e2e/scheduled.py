"""The real plane with kube-controller-manager and kube-scheduler, our kinds, and the rights of chosen components."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.binaries import TOOLS
from hack.program import Kubectl
from hack.realplane import CONTROLLER_MANAGER, SCHEDULER, SERVERS, RealPlane
from nodewright.crds import load_crds
from tests.docs.pages import ROOT
from tests.realplane import LIKE_EMBEDDED, require


@contextmanager
def scheduled(
    folder: Path,
    kubectl_binary: Path,
    *,
    components: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
    tools: Path = TOOLS,
) -> Iterator[tuple[RealPlane, Kubectl]]:
    """``components``: folders of deploy/components with an ``rbac.yaml``. ``flags``: more of kube-apiserver. ``tools``:
    the module that pins the version of Kubernetes.
    """
    require((*SERVERS, CONTROLLER_MANAGER, SCHEDULER), tools)
    there = RealPlane(folder / "plane", (*LIKE_EMBEDDED, *flags), controller_manager=True, scheduler=True)
    there.tools = tools
    with there as plane:
        kubectl = Kubectl(kubectl_binary, plane.kubeconfig, folder / "kubectl-cache")
        kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": load_crds()}))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=180s", timeout=240)
        for component in components:
            kubectl("apply", "-f", str(ROOT / "deploy" / "components" / component / "rbac.yaml"))
        yield plane, kubectl

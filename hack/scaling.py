"""A cluster that scales itself, for tests: a real control plane with its scheduler, our controllers, and an autoscaler.

``with Scaling(folder, kubectl, "externalgrpc") as scaling`` runs all of it; the autoscaler is the upstream one or the
stand-in (``hack.autoscaler``), by our gRPC gateway or by its own provider ``clusterapi``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import yaml

from hack import autoscaler
from hack.program import Kubectl, Program, Run
from hack.realplane import STOP_SECONDS

Provider = Literal["externalgrpc", "clusterapi"]
QUICK = (
    "--leader-elect=false",
    "--scan-interval=1s",
    "--scale-down-unneeded-time=3s",
    "--scale-down-unready-time=10s",
    "--scale-down-delay-after-add=3s",
    "--max-node-provision-time=20s",
    "--initial-node-group-backoff-duration=60s",
    "--node-delete-delay-after-taint=0s",
    "--unremovable-node-recheck-timeout=2s",
    "--new-pod-scale-up-delay=0s",
    "--namespace=kube-system",
    "--balance-similar-node-groups=true",
)
PRICES = {"dear": 9.0, "cheap": 1.0, "east": 2.0, "west": 2.0, "sold-out": 2.0}
"""An hour of a Node, by name of the MachineDeployment: no group without a price is taken by ``--expander=price``."""
RBAC = Path(__file__).parent.parent / "deploy" / "components" / "externalgrpc" / "rbac.yaml"
_CAPI = {"CAPI_GROUP": "cluster.k8s.io", "CAPI_VERSION": "v1alpha1"}


class Autoscaler:
    """The autoscaler as a child process; its log lies in ``folder``."""

    def __init__(self, folder: Path, kubeconfig: Path, provider: Provider, config: Path | None) -> None:
        binary, self.original = autoscaler.ensure()
        self._log = folder / "autoscaler.log"
        self._command = [str(binary), f"--cloud-provider={provider}", f"--kubeconfig={kubeconfig}", *QUICK]
        self._command += [f"--cloud-config={config}", "--expander=price"] if config is not None else []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=self._log.parent, env={**os.environ, **_CAPI}
            )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-6000:] if self._log.exists() else ""


class Gateway(Program):
    """`nodewright gateway externalgrpc` over mutual TLS, with certificates that its own command made.

    It has the rights that `deploy/components/externalgrpc` gives it, and no others.
    """

    def __init__(self, folder: Path, kubectl: Kubectl, port: int) -> None:
        self.certificates = folder / "tls"
        self.config = self.certificates / "cloud-config.yaml"
        flags = [f"--kubeconfig={_as_the_gateway(folder, kubectl)}", f"--port={port}"]
        flags += [f"--tls-cert-file={self.certificates / 'server.crt'}"]
        flags += [f"--tls-private-key-file={self.certificates / 'server.key'}"]
        flags += [f"--client-ca-file={self.certificates / 'ca.crt'}"]
        flags += [f"--price-table={_price_table(folder)}"]
        super().__init__(folder, kubectl, "gateway", "externalgrpc", *flags)
        certs = ["gateway", "externalgrpc", "certs", f"--out={self.certificates}", f"--port={port}"]
        subprocess.run([sys.executable, "-m", "nodewright.cli", *certs], check=True, capture_output=True, timeout=300)


def _price_table(folder: Path) -> Path:
    path = folder / "prices.yaml"
    nodes = {f"MachineDeployment/default/{name}": price for name, price in PRICES.items()}
    path.write_text(yaml.safe_dump({"nodes": nodes, "pods": {"cpu": 0.5, "memory": 0.1}}))
    return path


def _as_the_gateway(folder: Path, kubectl: Kubectl) -> Path:
    """A kubeconfig with a token of its service account, as a pod would have it."""
    kubectl("create", "namespace", "nodewright-system")
    kubectl("apply", "-f", str(RBAC))
    token = kubectl("create", "token", "nodewright-externalgrpc", "-n", "nodewright-system", "--duration=2h").strip()
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    path = folder / "gateway.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


class Scaling:
    """``gateway`` None: the autoscaler uses its own provider. Each part may be stopped and started again."""

    def __init__(self, folder: Path, kubectl: Kubectl, provider: Provider, port: int) -> None:
        self.kubectl = kubectl
        self.controllers = Run(folder, kubectl, f"--simulated-cloud={folder / 'cloud'}")
        self.gateway = Gateway(folder, kubectl, port) if provider == "externalgrpc" else None
        config = self.gateway.config if self.gateway is not None else None
        self.autoscaler = Autoscaler(folder, kubectl.kubeconfig, provider, config)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.controllers)
        if self.gateway is not None:
            self._stack.enter_context(self.gateway)
        self._stack.callback(self.autoscaler.stop)
        self.autoscaler.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

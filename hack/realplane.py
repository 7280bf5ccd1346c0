"""A real control plane on loopback, for tests: ``with RealPlane(folder) as plane: plane.kubeconfig``.

etcd and kube-apiserver, and on request kube-controller-manager and kube-scheduler. Certificates are made on the spot,
RBAC is on, nothing listens beyond 127.0.0.1, but for the API server where hosts of a lab have to reach it. All
processes end with the context, and also if this process is killed.

    python -m hack.realplane FOLDER [kube-controller-manager] [kube-scheduler]

runs until Ctrl-C and prints the kubeconfig's path.
"""

from __future__ import annotations

import contextlib
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from hack import binaries, credentials
from hack.children import GUARD, held_ports

START_SECONDS = 300
STOP_SECONDS = 60
SERVERS = ("etcd", "kube-apiserver")
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
NO_HEARTBEATS = ("*", "-node-lifecycle-controller")
"""All controllers but the one that calls a Node without heartbeats NotReady: simulated kubelets send none."""


def missing(names: Sequence[str] = SERVERS, tools: Path = binaries.TOOLS) -> str:
    """One line that says which of these parts are not there yet and how to get them; "" if all are."""
    lacking = [name for name in names if binaries.find(name, _module(name, tools)) is None]
    return f"{', '.join(lacking)} not found: {binaries.REMEDY}" if lacking else ""


def _module(name: str, tools: Path) -> Path:
    """Where the part is pinned: etcd is the same with each version of Kubernetes."""
    return binaries.TOOLS if name == "etcd" else tools


class RealPlane:
    """The parts as child processes. Raises ``binaries.BinaryMissing`` or RuntimeError if one fails.

    ``controllers`` are those of the kube-controller-manager, as its flag has them. ``address``: where the API server
    listens. ``extra_args`` are the API server's; ``--feature-gates`` among them goes to Kubernetes' other parts too. A
    part that was killed can be started again by its name: it finds its data, port and certificates as they were.
    """

    tools: Path = binaries.TOOLS
    """The module that pins the version of Kubernetes; to be chosen before the parts are started."""

    def __init__(
        self,
        folder: Path,
        extra_args: tuple[str, ...] = (),
        *,
        controller_manager: bool = False,
        scheduler: bool = False,
        controllers: tuple[str, ...] = NO_HEARTBEATS,
        address: str = credentials.LOOPBACK,
    ) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.url = ""
        self._extra = extra_args
        self._optional = [
            *([CONTROLLER_MANAGER] if controller_manager else []),
            *([SCHEDULER] if scheduler else []),
        ]
        self._controllers = controllers
        self._address = address
        self._gates = [flag for flag in extra_args if flag.startswith("--feature-gates=")]
        self._guard: subprocess.Popen[bytes] | None = None
        self._ports = contextlib.ExitStack()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = {name: binaries.ensure(name, _module(name, self.tools)) for name in (*SERVERS, *self._optional)}
        client_port, peer_port = self._ports.enter_context(held_ports(2))
        [port] = self._ports.enter_context(held_ports(1, self._address))
        self.url = f"https://{self._address}:{port}"
        credentials.write_all(self.folder, self.url, address=self._address)
        flags = {
            "etcd": self._etcd_flags(client_port, peer_port),
            "kube-apiserver": self._apiserver_flags(client_port, port),
            CONTROLLER_MANAGER: self._controller_manager_flags(),
            SCHEDULER: self.component_flags(SCHEDULER),
        }
        self._commands = {name: [str(binary), *flags[name]] for name, binary in found.items()}
        self._guard = subprocess.Popen(["/bin/sh", "-c", GUARD], stdin=subprocess.PIPE, process_group=0)
        try:
            for name in SERVERS:
                self.start(name)
            self.wait_ready()
            for name in self._optional:
                self.start(name)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name in reversed(list(self._commands)):
            self.stop(name)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.wait()
        self._ports.close()

    def start(self, name: str) -> None:
        """Begin a part; see ``wait_ready``."""
        assert self._guard is not None, "only inside of `with`"
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._commands[name], stdout=log, stderr=log, cwd=self.folder, process_group=self._guard.pid
            )

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a part and wait for its end; SIGKILL is how a crash looks."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait_ready(self) -> None:
        """Until the API server says that it is. Raises RuntimeError if a part has ended or it takes too long."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{self.log_tail(name)}")
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=20) as answer,
            ):
                if answer.status == 200:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"kube-apiserver is not ready after {START_SECONDS} s:\n{self.log_tail('kube-apiserver')}")

    def cpu_seconds(self) -> float:
        """What all parts have used of the processors so far."""
        return sum(self.cpu_by_part().values())

    def cpu_by_part(self) -> dict[str, float]:
        return {name: cpu_seconds(process.pid) for name, process in self._processes.items()}

    def log_tail(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def _etcd_flags(self, client_port: int, peer_port: int) -> list[str]:
        client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--socket-reuse-port",
            "--log-level=warn",
        ]

    def _apiserver_flags(self, etcd_port: int, port: int) -> list[str]:
        here, without = self.folder, []
        if not self._runs("serviceaccount-controller"):
            without.append("ServiceAccount")  # nobody makes the accounts that it asks for
        if not self._runs("node-lifecycle-controller"):
            without.append("TaintNodesByCondition")  # nobody takes the taint away again
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            f"--bind-address={self._address}",
            f"--secure-port={port}",
            "--permit-port-sharing",
            f"--advertise-address={self._address}",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={here / 'server.crt'}",
            f"--tls-private-key-file={here / 'server.key'}",
            f"--client-ca-file={here / 'ca.crt'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={here / 'service-account.crt'}",
            f"--service-account-signing-key-file={here / 'service-account.key'}",
            "--authorization-mode=Node,RBAC",
            *([f"--disable-admission-plugins={','.join(without)}"] if without else []),
            f"--service-cluster-ip-range={credentials.SERVICE_NET}",
            "--enable-bootstrap-token-auth",
            f"--cert-dir={here / 'certs'}",
            *self._extra,
        ]

    def _runs(self, controller: str) -> bool:
        """Whether the kube-controller-manager is there with this controller."""
        named = controller in self._controllers or (
            "*" in self._controllers and f"-{controller}" not in self._controllers
        )
        return named and CONTROLLER_MANAGER in self._optional

    def _controller_manager_flags(self) -> list[str]:
        return [
            *self.component_flags(CONTROLLER_MANAGER),
            f"--controllers={','.join(self._controllers)}",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self.folder / 'service-account.key'}",
            f"--root-ca-file={self.folder / 'ca.crt'}",
            f"--cluster-signing-cert-file={self.folder / 'ca.crt'}",
            f"--cluster-signing-key-file={self.folder / 'ca.key'}",
        ]

    def component_flags(self, name: str) -> list[str]:
        """Of the controllers and the scheduler. They serve nothing (port 0), and there is only one of each."""
        here = f"--kubeconfig={self.folder / name}.kubeconfig"
        return [here, "--secure-port=0", "--leader-elect=false", *self._gates]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, from Linux's ``/proc``."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/real-plane").absolute()
    parts = sys.argv[2:]
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    started = time.monotonic()
    plane = RealPlane(folder, controller_manager=CONTROLLER_MANAGER in parts, scheduler=SCHEDULER in parts)
    with plane:
        print(f"ready in {time.monotonic() - started:.1f} s: export KUBECONFIG={plane.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())

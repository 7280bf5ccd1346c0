"""A real kube-scheduler beside a real kube-apiserver, and what it says about one pod at a time."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hack import binaries
from hack.realplane import RealPlane
from tests.realplane import require

PARTS = ("etcd", "kube-apiserver", "kube-scheduler")
WITHOUT = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
"""Nobody here makes accounts or takes the taint of new Nodes away."""
PATIENCE = 300.0
_CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "leaderElection": {"leaderElect": False},
    "clientConnection": {"qps": 2000, "burst": 4000},
    "parallelism": 1,
}


class Api:
    """Plain requests; one connection per thread."""

    def __init__(self, plane: RealPlane) -> None:
        self._host = urlsplit(plane.url).netloc
        self._context = ssl.create_default_context(cafile=str(plane.folder / "ca.crt"))
        self._context.load_cert_chain(plane.folder / "admin.crt", plane.folder / "admin.key")
        self._local = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []

    def connect(self, timeout: float | None = PATIENCE) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(self._host, context=self._context, timeout=timeout)
        self._connections.append(connection)
        return connection

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        if not hasattr(self._local, "connection"):
            self._local.connection = self.connect()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        payload = json.dumps(body) if body is not None else None
        self._local.connection.request(method, path, payload, {"Content-Type": kind})
        answer = self._local.connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status < 300, found
        return found


class Verdicts:
    """Watches pods; ``of`` waits until the scheduler has said something about one."""

    def __init__(self, api: Api) -> None:
        self._changed = threading.Condition()
        self._pods: dict[str, Any] = {}
        connection = api.connect(timeout=None)
        connection.request("GET", "/api/v1/pods?watch=1&timeoutSeconds=3600")
        self._answer = connection.getresponse()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def join(self) -> None:
        """Once the server has ended the stream."""
        self._reading.join(PATIENCE)
        self._answer.close()

    def of(self, uid: str) -> Any:
        """The pod as it was when it was bound or refused."""
        with self._changed:
            found = self._changed.wait_for(lambda: self._pods.get(uid), PATIENCE)
        assert found, "the scheduler has said nothing"
        return found

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            for line in self._answer:
                pod = json.loads(line)["object"]
                if pod.get("kind") == "Pod" and (bound_to(pod) or refused(pod)):
                    with self._changed:
                        self._pods.setdefault(pod["metadata"]["uid"], pod)
                        self._changed.notify_all()


def bound_to(pod: Any) -> str:
    return str(pod["spec"].get("nodeName", ""))


def refused(pod: Any) -> str:
    """The scheduler's message, "" if it has not refused the pod."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message") or condition["reason"]
    return ""


@contextlib.contextmanager
def scheduler(folder: Path) -> Iterator[tuple[Api, Verdicts]]:
    require(PARTS)
    with RealPlane(folder, (WITHOUT,)) as plane:
        config = folder / "scheduler.json"
        client = {**_CONFIG["clientConnection"], "kubeconfig": str(plane.kubeconfig)}  # type: ignore[dict-item]
        config.write_text(json.dumps({**_CONFIG, "clientConnection": client}))
        log = (folder / "kube-scheduler.log").open("ab")
        command = [str(binaries.ensure("kube-scheduler")), f"--config={config}", "--secure-port=0"]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        api = Api(plane)
        verdicts = Verdicts(api)
        try:
            yield api, verdicts
        finally:
            process.terminate()
            process.wait()
            log.close()
            plane.stop("kube-apiserver")
            verdicts.join()
            api.close()

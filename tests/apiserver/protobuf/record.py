"""Records what kubectl sends, for these tests: `python -m tests.apiserver.protobuf.record KUBECTL > golden/….json`.

A server on loopback keeps the bodies and refuses every request; what kubectl itself says it would send
(`--dry-run=client -o json`) is the expected object. Prints JSON to standard output.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

PROTOBUF = "application/vnd.kubernetes.protobuf"
COMMANDS = (
    "create namespace blue",
    "create serviceaccount robot",
    "create secret generic login --from-literal=user=ada --from-literal=empty= --from-literal=key=äöü",
    "create secret docker-registry pull --docker-server=r.example --docker-username=u --docker-password=p",
    "create configmap settings --from-literal=a=1 --from-literal=b=",
    "create configmap binary --from-file=blob=BLOB",
    "create deployment web --image=web:1 --replicas=0 --port=8080",
    "create deployment sleeper --image=busybox -- sleep 60",
    "create job once --image=busybox -- true",
    "create cronjob nightly --image=busybox --schedule=0_3_*_*_*",
    "create poddisruptionbudget half --selector=app=web --min-available=50%",
    "create poddisruptionbudget one --selector=app=web --max-unavailable=1",
    "create quota small --hard=cpu=1,memory=1Gi,pods=2",
    "create clusterrole urls --verb=get --non-resource-url=/healthz",
    "create rolebinding readers --role=reader --user=ada --serviceaccount=default:robot",
    "create clusterrolebinding admins --clusterrole=admin --group=ops",
    "create priorityclass high --value=1000 --preemption-policy=Never --description=first",
    "create priorityclass low --value=-5 --global-default=true",
    "create service nodeport front --tcp=80:8080 --node-port=30080",
    "create service externalname away --external-name=away.example",
    "create ingress door --rule=door.example/=front:80",
)
UNSHOWN = ("create token robot --duration=10m", "auth can-i delete pods/web", "auth can-i get /healthz")
"""Commands without a client-side dry run: only what they send is recorded."""


class Bodies(http.server.BaseHTTPRequestHandler):
    """Keeps protobuf bodies in `server.bodies`."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Type") == PROTOBUF:
            self.server.bodies.append(body)  # type: ignore[attr-defined]
        if "discovery" in self.headers.get("Accept", ""):
            return self._send(
                200, {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []}
            )
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"}
        return self._send(403, status)

    def _send(self, code: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(code)
        kind = "application/json"
        if content["kind"] == "APIGroupDiscoveryList":
            kind += ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def main() -> int:
    """Record the commands' bodies."""
    kubectl = sys.argv[1] if len(sys.argv) > 1 else "kubectl"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bodies)
    server.bodies = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    recorded = []
    with tempfile.TemporaryDirectory() as folder:
        blob = Path(folder, "blob")
        blob.write_bytes(bytes(range(256)))
        for command in (*COMMANDS, *UNSHOWN):
            words = [w.replace("_", " ").replace("BLOB", str(blob)) for w in command.split()]
            server.bodies.clear()  # type: ignore[attr-defined]
            run = [kubectl, f"--server=http://127.0.0.1:{server.server_port}", f"--cache-dir={folder}", *words]
            home = {**os.environ, "HOME": folder, "KUBECONFIG": "/dev/null"}
            sent = subprocess.run(run, env=home, capture_output=True, text=True, timeout=30, check=False)
            if not server.bodies:  # type: ignore[attr-defined]
                print(f"{command}: no protobuf was sent: {sent.stderr.strip()}", file=sys.stderr)
                continue
            entry = {"command": command, "body": server.bodies[-1].hex()}  # type: ignore[attr-defined]
            if command in COMMANDS:
                place = words.index("--") if "--" in words else len(words)
                dry = [*run[:3], *words[:place], "--dry-run=client", "-o", "json", *words[place:]]
                shown = subprocess.run(dry, env=home, capture_output=True, text=True, timeout=30, check=True)
                entry["object"] = json.loads(shown.stdout)
            recorded.append(entry)
    json.dump(recorded, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A real etcd and kube-apiserver on loopback, for tests: ``with RealPlane(folder) as plane: plane.kubeconfig``.

Certificates are made on the spot, RBAC is on, nothing listens beyond 127.0.0.1; both processes end with the context.

    python -m hack.realplane FOLDER      # runs until Ctrl-C and prints the kubeconfig's path
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hack import binaries

START_SECONDS = 60
PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def _private(path: Path, data: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


def _issue(common_name: str, organization: str = "", issuer: Pair | None = None) -> Pair:
    """A CA if there is no issuer, else a certificate for client and server on loopback."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        names.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    subject = x509.Name(names)
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=7))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer:
        alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return Pair(builder.sign((issuer.key if issuer else key), hashes.SHA256()), key)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class RealPlane:
    """etcd and kube-apiserver as child processes. Raises ``binaries.BinaryMissing`` or RuntimeError if one fails."""

    def __init__(self, folder: Path, extra_args: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self.url = ""
        self._extra = extra_args
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    def __enter__(self) -> RealPlane:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        etcd, apiserver = binaries.ensure("etcd"), binaries.ensure("kube-apiserver")
        client_port, peer_port, port = _free_ports(3)
        self.url = f"https://127.0.0.1:{port}"
        self._write_credentials()
        self._commands = {
            "etcd": self._etcd_command(etcd, client_port, peer_port),
            "kube-apiserver": self._apiserver_command(apiserver, client_port, port),
        }
        try:
            for name in self._commands:
                self.start(name)
            self.wait_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name in reversed(list(self._processes)):
            self.stop(name)

    def start(self, name: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            self._processes[name] = subprocess.Popen(self._commands[name], stdout=log, stderr=log, cwd=self.folder)

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def wait_ready(self) -> None:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        context.load_cert_chain(self.folder / "admin.crt", self.folder / "admin.key")
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}:\n{self.log_tail(name)}")
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=2) as answer,
            ):
                if answer.status == 200:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"kube-apiserver is not ready after {START_SECONDS} s:\n{self.log_tail('kube-apiserver')}")

    def log_tail(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]

    def _write_credentials(self) -> None:
        authority = _issue("nodewright-test-ca")
        _private(self.folder / "ca.crt", authority.certificate.public_bytes(PEM))
        pairs = {
            "server": _issue("kube-apiserver", issuer=authority),
            "admin": _issue("admin", "system:masters", authority),
            "service-account": _issue("service-account", issuer=authority),
        }
        for name, pair in pairs.items():
            _private(self.folder / f"{name}.crt", pair.certificate.public_bytes(PEM))
            form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            _private(self.folder / f"{name}.key", pair.key.private_bytes(PEM, form, encryption))
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [
                {"name": "real", "cluster": {"server": self.url, "certificate-authority": str(self.folder / "ca.crt")}}
            ],
            "users": [
                {
                    "name": "admin",
                    "user": {
                        "client-certificate": str(self.folder / "admin.crt"),
                        "client-key": str(self.folder / "admin.key"),
                    },
                }
            ],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        }
        _private(self.kubeconfig, yaml.safe_dump(config).encode())

    def _etcd_command(self, binary: Path, client_port: int, peer_port: int) -> list[str]:
        client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
        return [
            str(binary),
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _apiserver_command(self, binary: Path, etcd_port: int, port: int) -> list[str]:
        here = self.folder
        return [
            str(binary),
            f"--etcd-servers=http://127.0.0.1:{etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={here / 'server.crt'}",
            f"--tls-private-key-file={here / 'server.key'}",
            f"--client-ca-file={here / 'ca.crt'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={here / 'service-account.crt'}",
            f"--service-account-signing-key-file={here / 'service-account.key'}",
            "--authorization-mode=Node,RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--service-cluster-ip-range=10.250.0.0/24",
            "--enable-bootstrap-token-auth",
            f"--cert-dir={here / 'certs'}",
            *self._extra,
        ]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[RealPlane]:
    with RealPlane(folder) as plane:
        yield plane


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/real-plane").absolute()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    started = time.monotonic()
    with running(folder) as plane:
        print(f"ready in {time.monotonic() - started:.1f} s: export KUBECONFIG={plane.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())

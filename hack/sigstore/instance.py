"""Starts the services of a private Sigstore on loopback, with keys of their own.

with Instance(folder) as sigstore:
    sigstore.trust_config, sigstore.issuer.token("release@nodewright.example")
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.children import Children, free_ports
from hack.pinned import FULCIO, REKOR, TESSERACT, TSA
from hack.sigstore import authorities, issuer

READY_SECONDS = 60
SOCKET = "fulcio.sock"
SERVICES = ("tesseract", "fulcio", "rekor", "tsa")
"""Each one before those that ask it."""


class Instance:
    """``trust_config``: file for `--trust-config`. ``issuer``: whose tokens Fulcio takes.

    One at a time on a machine: the timestamp authority serves its metrics on port 2112, whatever it is given.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self._authorities = {"ca": authorities.signing_authority(), "tsa": authorities.timestamp_authority()}
        self._logs = {"ct": authorities.new_log(), "rekor": authorities.new_log()}
        ports = free_ports(8)
        self._ports = dict(zip(("ca", "ct", "rekor", "tsa"), ports, strict=False))
        self._spare = ports[4:]
        self.trust_config = folder / "trust-config.json"
        self.issuer = issuer.Issuer()
        self._children = Children(folder)

    def __enter__(self) -> Self:
        """Raises BinaryMissing for a program that is missing and can't be built."""
        with contextlib.ExitStack() as stack:
            self.write()
            stack.enter_context(self.issuer)
            stack.enter_context(self._children)
            for name in SERVICES:
                self._start(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def _url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._ports[name]}"

    def write(self) -> None:
        """Keys, certificates and configurations, of which the services start."""
        for name, authority in self._authorities.items():
            authority.write(self._folder, name)
        for name, log in self._logs.items():
            log.write(self._folder, name)
        urls = {name: self._url(name) for name in self._ports} | {"oidc": issuer.URL}
        self.trust_config.write_text(authorities.trust_config(urls, self._authorities, self._logs))
        described = {"IssuerURL": issuer.URL, "ClientID": "sigstore", "Type": "email"}
        (self._folder / "fulcio.json").write_text(json.dumps({"OIDCIssuers": {issuer.URL: described}}))

    @contextlib.contextmanager
    def without(self, name: str) -> Iterator[None]:
        """While this service is down."""
        self._children.stop(name)
        try:
            yield
        finally:
            self._start(name)

    def _start(self, name: str) -> None:
        command, page = {
            "tesseract": (self._tesseract, f"{self._url('ct')}/healthz"),
            "fulcio": (self._fulcio, f"{self._url('ca')}/healthz"),
            "rekor": (self._rekor, f"{self._url('rekor')}/healthz"),
            "tsa": (self._tsa, f"{self._url('tsa')}/ping"),
        }[name]
        proxy = {"HTTP_PROXY": f"http://127.0.0.1:{self.issuer.port}"}  # Go asks none for what is on loopback
        self._children.start(name, command(), {"HOME": str(self._folder), **proxy})
        self._children.until_it_answers(name, page, READY_SECONDS)

    def _tesseract(self) -> list[str]:
        """The CT log: Fulcio gets a timestamp for each certificate from it."""
        return [
            str(TESSERACT.ensure()),
            "--private_key=ct.key",
            "--roots_pem_file=ca.pem",
            "--storage_dir=ct",
            f"--http_endpoint=127.0.0.1:{self._ports['ct']}",
            "--origin=127.0.0.1",
            "--ext_key_usages=CodeSigning",
        ]

    def _fulcio(self) -> list[str]:
        (self._folder / SOCKET).unlink(missing_ok=True)  # of one that has ended: the next can't bind to it
        grpc, metrics = self._spare[:2]
        return [
            *(str(FULCIO.ensure()), "serve", "--ca=fileca"),
            *("--fileca-cert=ca.pem", "--fileca-key=ca.key", "--fileca-key-passwd=none"),
            *("--fileca-watch=false", "--config-path=fulcio.json", f"--ct-log-url={self._url('ct')}"),
            *("--host=127.0.0.1", f"--port={self._ports['ca']}", "--grpc-host=127.0.0.1", f"--grpc-port={grpc}"),
            *(f"--metrics-port={metrics}", f"--legacy-unix-domain-socket={SOCKET}"),
        ]

    def _rekor(self) -> list[str]:
        grpc, metrics = self._spare[2:]
        return [
            *(str(REKOR.ensure()), "serve", "--storage-dir=rekor", "--signer-filepath=rekor.key"),
            *("--hostname=127.0.0.1", f"--http-port={self._ports['rekor']}", f"--grpc-port={grpc}"),
            *(f"--http-metrics-port={metrics}", "--checkpoint-interval=1s"),
        ]

    def _tsa(self) -> list[str]:
        return [
            *(str(TSA.ensure()), "serve", "--host=127.0.0.1", f"--port={self._ports['tsa']}"),
            *("--timestamp-signer=file", "--file-signer-key-path=tsa.key"),
            *("--certificate-chain-path=tsa.pem", "--disable-ntp-monitoring"),
        ]

"""A fast world of hosts: real SSH (asyncssh on both sides) and the real shell of ``providers.ssh.remote``.

Each host is a folder: paths below which a host keeps its state lie in it, and ``systemctl`` is a program that only
writes down what it was told. The scripts of units never run here, for they would change this machine: ``World.clean``
does to a host what its release does. The lab's hosts (``tests/hosts``) have the real thing.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh

from providers.base.errors import ErrorClass, ProviderError

USER_KEY = asyncssh.generate_private_key("ssh-ed25519")
POOL, SECRET = "racks", "racks-key"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MOVED = ("/var/lib/nodewright", "/etc/systemd/system", "/etc/kubernetes", _BOOT_ID, "/run/nodewright-reboot")


class _Server(asyncssh.SSHServer):
    """It opens connections to its own localhost alone, if it ``may``."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._host.connections.add(conn)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        self._host.opened.append(dest_port)
        return self._host.may_open and dest_host == "localhost"


class FakeHost:
    """``cut``: word of a script (``claim``, ``start``, ``release``) → where the connection ends, once: ``before`` the
    script runs or ``after``; ``down``: after it the whole host goes. ``dirty``: can't be cleaned.
    ``hangs``: takes commands and does nothing. ``endless``: answers
    for ever.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.root = folder / name
        self.home = self.root / "var/lib/nodewright/ssh"
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.certificate: asyncssh.SSHCertificate | None = None
        """Of its key, which it shows from the next ``up`` on."""
        self.cut: dict[str, str] = {}
        self.dirty = False
        self.hangs = self.endless = False
        self.undefined: list[str] = []
        """What scripts called that neither they nor the host have."""
        self.most_at_once = self._at_once = 0
        """Commands that ran at a time."""
        self.commands: list[tuple[str, dict[str, str]]] = []
        self.opened: list[int] = []
        """Ports of its localhost that were asked for."""
        self.may_open = True
        self.port = 0
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self.connections: set[asyncssh.SSHServerConnection] = set()
        (self.root / "bin").mkdir(parents=True)
        (self.root / "etc/systemd/system").mkdir(parents=True)
        self._program(
            "systemctl",
            f'echo "$*" >> {self.root}/systemctl.log\n'
            f'[ "$1$(ls {self.root}/hung 2>/dev/null)" != reboot ] || '
            f"cat /proc/sys/kernel/random/uuid > {self.root}{_BOOT_ID}\n"
            f'[ "$1 $2" != "start --no-block" ] || [ ! -e {self.root}/starting ] || : > {self.root}/active/"$3"\n'
            f'[ "$1" = is-active ] || exit 0\nfor unit in "$@"; do :; done\n'
            f'if [ -e {self.root}/active/"$unit" ]; then echo active; else echo inactive; exit 3; fi',
        )
        (self.root / _BOOT_ID[1:]).parent.mkdir(parents=True)
        (self.root / "run").mkdir()
        self.boot()
        self._program("uname", f"echo {name}")
        self._program(
            "date", f'[ "$*" = +%s ] || exec /bin/date "$@"\necho $(($(/bin/date +%s) + $(cat {self.root}/off)))'
        )
        self.clock = 0
        self._program("ps", "echo systemd")
        self._program("sudo", "echo 'sudo: a password is required' >&2; exit 1")

    def _program(self, name: str, body: str) -> None:
        (self.root / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.root / "bin" / name).chmod(0o755)

    def boot(self) -> None:
        """Boot anew."""
        (self.root / _BOOT_ID[1:]).write_text(f"{uuid.uuid4()}\n")

    @property
    def reboots(self) -> int:
        """How often it was asked to boot anew."""
        log = self.root / "systemctl.log"
        return log.read_text().splitlines().count("reboot") if log.exists() else 0

    @property
    def clock(self) -> int:
        """Seconds that its clock is ahead."""
        return int((self.root / "off").read_text())

    @clock.setter
    def clock(self, ahead: int) -> None:
        (self.root / "off").write_text(str(ahead))

    async def up(self, authorized: str = USER_KEY.export_public_key().decode()) -> None:
        """``authorized``: its authorized_keys."""
        keys = asyncssh.import_authorized_keys(authorized)
        self._acceptor = await asyncssh.listen(
            "127.0.0.1", self.port, authorized_client_keys=keys, process_factory=self._serve, reuse_address=True,
            server_factory=lambda: _Server(self),
            server_host_keys=[self.key if self.certificate is None else (self.key, self.certificate)],
        )  # fmt: skip
        self.port = self._acceptor.get_port()

    async def down(self) -> None:
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None
        for connection in self.connections:
            connection.abort()
        self.connections.clear()

    def entry(self, **changes: Any) -> dict[str, Any]:
        public = " ".join(self.key.export_public_key().decode().split()[:2])
        return {"name": self.name, "address": "127.0.0.1", "port": self.port, "hostKeys": [public], **changes}

    def claim(self) -> str:
        """The claim that lies on the host, "" if there is none."""
        file = self.home / "claim"
        return file.read_text().splitlines()[1] if file.exists() else ""

    def has_joined(self) -> None:
        """The steps of the join are done."""
        (self.root / "etc/kubernetes").mkdir(exist_ok=True)
        (self.root / "etc/kubernetes/kubelet.conf").touch()
        (self.home / "join.sh").unlink(missing_ok=True)
        self.begins("kubelet.service")

    def begins(self, unit: str) -> None:
        """From now on systemd says that ``unit`` runs."""
        (self.root / "active").mkdir(exist_ok=True)
        (self.root / "active" / unit).touch()

    def stops(self, unit: str, *, starts: bool = True) -> None:
        """Somebody stops ``unit``. ``starts``: it runs once it is started again."""
        (self.root / "active" / unit).unlink()
        (self.root / "starting").unlink(missing_ok=True)
        if starts:
            (self.root / "starting").touch()

    @property
    def kubelet_starts(self) -> int:
        """How often its kubelet was started."""
        return (self.root / "systemctl.log").read_text().splitlines().count("start --no-block kubelet.service")

    def has_changed(self) -> None:
        """The steps of a change are done."""
        (self.home / "changing").replace(self.home / "changed")

    async def _serve(self, process: asyncssh.SSHServerProcess[str]) -> None:
        self.commands.append((process.command or "", dict(process.env)))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self._answer(process)
        finally:
            self._at_once -= 1

    @property
    def logins(self) -> int:
        return len(self.connections)

    async def _answer(self, process: asyncssh.SSHServerProcess[str]) -> None:
        connection = process.channel.get_connection()
        script = await process.stdin.read()
        while self.endless:
            process.stdout.write("x" * 8192)
            await process.stdout.drain()
        if self.hangs:
            await process.channel.wait_closed()
            return
        where = next((self.cut.pop(word) for word in list(self.cut) if f"\n# {word}\n" in script), "")
        if where == "before":
            connection.abort()
            return
        code, out, err = await self._execute(process.command or "", script)
        if where == "down":
            await self.down()
        if where:
            connection.abort()
            return
        process.stdout.write(out)
        process.stderr.write(err)
        process.exit(code)

    async def _execute(self, command: str, script: str) -> tuple[int, str, str]:
        for path in _MOVED:
            script = script.replace(path, f"{self.root}{path}")
        shell = await asyncio.create_subprocess_exec(
            *command.split(), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env={"PATH": f"{self.root}/bin:/usr/bin:/bin"}, cwd=self.root,
        )  # fmt: skip
        out, err = await shell.communicate(script.encode())
        self.undefined += [line for line in err.decode().splitlines() if line.endswith("not found")]
        return shell.returncode or 0, out.decode(), err.decode()


class World:
    """Hosts of one pool, and the objects that a provider reads: the pool and the Secrets."""

    def __init__(self, folder: Path, count: int, secrets: Mapping[str, Mapping[str, bytes]]) -> None:
        self.hosts = {f"h{number}": FakeHost(f"h{number}", folder) for number in range(1, count + 1)}
        key = {"ssh-privatekey": USER_KEY.export_private_key()}
        self.secrets = HeldSecrets({**secrets, SECRET: key})
        self.objects = HeldObjects()

    async def up(self) -> None:
        await asyncio.gather(*(host.up() for host in self.hosts.values()))
        self.publish()

    def publish(self, shared: Mapping[str, Any] | None = None, **changes: Mapping[str, Any]) -> None:
        """The pool. ``changes``: other values of its entries, by host; ``shared``: of its spec."""
        entries = [host.entry(**changes.get(name, {})) for name, host in self.hosts.items()]
        self.objects.pool = {
            "apiVersion": "ssh.nodewright.dev/v1alpha1",
            "kind": "SSHHostPool",
            "metadata": {"name": POOL, "namespace": "contract", "resourceVersion": "1"},
            "spec": {"secretName": SECRET, "hosts": entries, **(shared or {})},
        }

    async def down(self) -> None:
        for host in self.hosts.values():
            await host.down()
        assert [line for host in self.hosts.values() for line in host.undefined] == []

    def clean(self) -> None:
        """What the units of hosts that are to be cleaned do in the end."""
        for host in self.hosts.values():
            if (host.home / "releasing").exists():
                if host.dirty:
                    (host.home / "quarantine").write_text("the kubelet still runs\n")
                for name in ("claim", "started", "join.sh", "changing", "changed", "change.sh", "kubelet", "clean.sh"):
                    (host.home / name).unlink(missing_ok=True)
                (host.home / "releasing").unlink()

    def claims(self) -> list[str]:
        return [host.claim() for host in self.hosts.values() if host.claim()]


class HeldSecrets:
    def __init__(self, secrets: Mapping[str, Mapping[str, bytes]]) -> None:
        self.secrets = dict(secrets)
        self.types: dict[str, str] = {}

    async def read(self, name: str, of_type: str = "") -> Mapping[str, bytes]:
        if name not in self.secrets:
            raise ProviderError(ErrorClass.NOT_FOUND, f"Secret contract/{name} does not exist")
        if of_type and self.types.get(name) != of_type:
            raise ProviderError(
                ErrorClass.INVALID_CONFIGURATION, f"Secret contract/{name} is not of the type {of_type}"
            )
        return self.secrets[name]


class HeldObjects:
    """One pool, with writes that are guarded as an API server's are."""

    def __init__(self) -> None:
        self.pool: dict[str, Any] = {}

    async def read(self, api_version: str, kind: str, name: str) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        if name != self.pool["metadata"]["name"]:
            raise ProviderError(ErrorClass.NOT_FOUND, f"{kind} contract/{name} does not exist")
        return self.pool

    async def report(self, obj: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        version = self.pool["metadata"]["resourceVersion"]
        if obj["metadata"]["resourceVersion"] != version:
            raise ProviderError(ErrorClass.CONFLICT, "SSHHostPool contract/racks was changed meanwhile")
        metadata = {**self.pool["metadata"], "resourceVersion": str(int(version) + 1)}
        self.pool = {**self.pool, "metadata": metadata, "status": _merged(self.pool.get("status") or {}, status)}
        return self.pool


def _merged(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    merged = dict(before)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name) or {}, value) if isinstance(value, Mapping) else value
    return merged

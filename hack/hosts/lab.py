"""Hosts of one lab, kept in a folder: they outlive the process that made them, and any process may go on with them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hack.hosts import images, network, parts, tree
from hack.hosts.guests import Guest
from hack.hosts.network import Net
from hack.hosts.parts import LabError


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a host. ``identity``: whom it is for, which also identifies it among the ``hosts`` of a lab;
    ``number``: its place on the network, 1 to 200; ``notes``: what the caller wants kept with it.
    """

    identity: str
    name: str
    number: int
    created_at: str
    notes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """A host as it is now. ``working``: some process makes or removes it at this moment."""

    record: Record
    booted: bool
    deleting: bool
    working: bool
    running: bool


class Lab:
    """All hosts below ``folder``. Raises LabError where this machine can't have them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / "lab.json"
        if not file.is_file():
            raise LabError(f"{folder} holds no lab: `python -m hack.hosts up {folder}` makes one")
        self.net = Net(json.loads(file.read_text())["network"])

    @classmethod
    def make(cls, folder: Path) -> Lab:
        """A lab without hosts, with a network of its own; the one that is there already if there is one."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (folder / "lab.json").is_file():
            if why := parts.no_room(folder):
                raise LabError(why)
            tree.ensure()
            parts.allow_many_hosts()
            net = network.free()
            network.up(net)
            (folder / "payload").mkdir(exist_ok=True)
            shutil.copy(images.ensure_pause(), folder / "payload" / "pause.tar")
            (folder / "lab.json").write_text(json.dumps({"network": net.number}))
        return cls(folder)

    @property
    def payload(self) -> Path:
        """What every host of the lab sees at /opt/payload: images (`*.tar`) that it imports at its start."""
        return self.folder / "payload"

    def guest(self, record: Record) -> Guest:
        return Guest(self._home(record.identity) / "guest", self.net, record.number, record.name)

    def hosts(self) -> list[Seen]:
        found = (self.find(path.name) for path in sorted((self.folder / "hosts").glob("*")))
        return [seen for seen in found if seen is not None]

    def find(self, identity: str) -> Seen | None:
        home = self._home(identity)
        record = self._record(home)
        if record is None:
            return None
        return Seen(
            record,
            booted=(home / "booted").exists(),
            deleting=(home / "deleting").exists(),
            working=_is_locked(home),
            running=self.guest(record).is_running(),
        )

    def start(self, record: Record, seed: Mapping[str, bytes]) -> Record:
        """Make and boot the host of ``record.identity``; go on with it where another process ended. Blocks."""
        home = self._home(record.identity)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(home):
            kept = self._record(home) or replace(record, number=self._number(record.identity))
            self._keep(home, kept)
            if not (home / "booted").exists():
                guest = self.guest(kept)
                guest.prepare(tree.ensure(), dict(seed))
                guest.boot(self.payload)
                (home / "booted").touch()
            return kept

    def booted_at(self, identity: str) -> float:
        """The moment at which a host was booted, in seconds since the epoch. Raises LabError if it was not."""
        try:
            return (self._home(identity) / "booted").stat().st_mtime
        except FileNotFoundError:
            raise LabError(f"{self.folder} has no host {identity} that was booted") from None

    def note(self, identity: str, notes: Mapping[str, str]) -> None:
        """Keep other ``notes`` with a host. Raises LabError if there is none."""
        home = self._home(identity)
        with _locked(home):
            record = self._record(home)
            if record is None:
                raise LabError(f"{self.folder} has no host {identity}")
            self._keep(home, replace(record, notes=notes))

    def remove(self, identity: str) -> None:
        """Remove a host and all of it; nothing if there is none. Blocks."""
        home = self._home(identity)
        if not home.is_dir():
            return
        (home / "deleting").touch()
        with _locked(home):
            record = self._record(home)
            if record is not None:
                self.guest(record).destroy()
                (self.folder / "numbers" / str(record.number)).unlink(missing_ok=True)
            shutil.rmtree(home, ignore_errors=True)

    def clean(self) -> None:
        """Remove all hosts, the network and the folder."""
        for home in sorted((self.folder / "hosts").glob("*")):
            self.remove(home.name)
        network.down(self.net)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _number(self, identity: str) -> int:
        """A number that no other host has: whoever makes its file first has it."""
        numbers = self.folder / "numbers"
        numbers.mkdir(exist_ok=True)
        for number in range(1, network.HOSTS + 1):
            with contextlib.suppress(FileExistsError), (numbers / str(number)).open("x") as file:
                file.write(identity)
                return number
            if (numbers / str(number)).read_text() == identity:  # ours, from a start that was interrupted
                return number
        raise LabError(f"{self.folder} has {network.HOSTS} hosts, and no more addresses")

    def _home(self, identity: str) -> Path:
        if not identity or "/" in identity or identity.startswith("."):
            raise LabError(f"{identity!r} is no identity of a host")
        return self.folder / "hosts" / identity

    @staticmethod
    def _record(home: Path) -> Record | None:
        with contextlib.suppress(FileNotFoundError):
            return Record(**json.loads((home / "record.json").read_text()))
        return None

    @staticmethod
    def _keep(home: Path, record: Record) -> None:
        partial = home / "record.new"
        partial.write_text(json.dumps(asdict(record)))
        partial.rename(home / "record.json")


@contextlib.contextmanager
def _locked(home: Path) -> Iterator[None]:
    with (home / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_locked(home: Path) -> bool:
    with contextlib.suppress(FileNotFoundError), (home / "lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False

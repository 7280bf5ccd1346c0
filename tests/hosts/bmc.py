"""A BMC of a lab's host: OpenIPMI's ``ipmi_sim`` speaks IPMI 2.0, and its power actions stop and start the host.

It runs this file for each action: ``python -m tests.hosts.bmc FOLDER 0x20 set power 0``.
"""

from __future__ import annotations

import pickle
import shlex
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hack.hosts.guests import Guest
from hack.hosts.lab import Lab

USER, PASSWORD = "ops", "a-secret"
_LAN = """\
name "bmc"
set_working_mc 0x20
startlan 1
  addr {address} {port}
  priv_limit admin
  allowed_auths_admin none md2 md5 straight
  guid 5a1ab0b0c0de00000000000000000020
endlan
chassis_control "{program} 0x20"
user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
_CONTROLLER = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
mc_enable 0x20
"""
_ACTION = """\
#!/bin/sh
cd {project} || exit
echo "$*" >> {folder}/asked
[ "$2" = set ] || exec {python} -m tests.hosts.bmc {folder} "$@"
{python} -m tests.hosts.bmc {folder} "$@" > {folder}/log 2>&1 < /dev/null &
"""
"""A BMC answers before the machine has done it."""


class Bmc:
    """``folder`` is a new one; ``asked`` tells what was asked of the machine, a line each."""

    def __init__(self, folder: Path, lab: Lab, guest: Guest) -> None:
        self._folder = folder
        self.address = lab.net.gateway
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((self.address, 0))
            self.port = int(one.getsockname()[1])
        (folder / "state").mkdir(parents=True)
        (folder / "asked").touch()
        (folder / "guest").write_bytes(pickle.dumps((guest, lab.payload)))
        words = {"project": Path(__file__).parents[2], "folder": folder, "python": sys.executable}
        action = folder / "action"
        action.write_text(_ACTION.format(**{name: shlex.quote(str(word)) for name, word in words.items()}))
        action.chmod(0o755)
        lan = _LAN.format(address=self.address, port=self.port, program=action, user=USER, password=PASSWORD)
        (folder / "lan.conf").write_text(lan)
        (folder / "controller").write_text(_CONTROLLER)

    def __enter__(self) -> Bmc:
        command = ["ipmi_sim", "-n", "-c", "lan.conf", "-f", "controller", "-s", "state"]
        with (self._folder / "output").open("wb") as output:
            self._process = subprocess.Popen(command, cwd=self._folder, stdout=output, stderr=output)
        listening = ["ss", "-Hlun", f"sport = :{self.port}"]
        while not subprocess.run(listening, capture_output=True, check=True).stdout:
            assert self._process.poll() is None, (self._folder / "output").read_text()
            time.sleep(0.05)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()

    def asked(self) -> list[str]:
        """What it was told to do, without what it was asked."""
        lines = (self._folder / "asked").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if " set " in line]

    def command(self) -> tuple[str, ...]:
        """As docs/providers/ssh.md has it, with the port, and the suite that this BMC has."""
        patient = ("-N", "10", "-R", "3")  # a BMC has a processor of its own, which this one may have to wait for
        where = ("-I", "lanplus", "-C", "3", *patient, "-p", str(self.port), "-H", "{address}")
        return (str(shutil.which("ipmitool")), *where, "-U", "{user}", "-f", "{password-file}", "chassis", "power")


def main(folder: Path, verb: str, words: list[str]) -> None:
    guest, payload = pickle.loads((folder / "guest").read_bytes())
    if verb == "get":
        for word in words:
            print(f"{word}:{int(word == 'power' and guest.is_running())}")
        return
    match words:
        case ["power", "1"]:
            guest.boot(payload)
        case ["power", "0"]:
            guest.stop(patience=0)


if __name__ == "__main__":
    with suppress(FileNotFoundError):  # the test is over
        main(Path(sys.argv[1]), sys.argv[3], sys.argv[4:])

"""A bridge for the hosts of a lab, and for each host a network namespace with one address on it.

Addresses are of 198.18.0.0/15, which is set aside for tests of networks (RFC 2544): nothing real is there.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from hack.hosts.parts import LabError, run

_FIRST, _LAST = 0, 255
HOSTS = 200
"""Hosts of one lab, at most: their numbers are 1 to 200."""


@dataclass(frozen=True, slots=True)
class Net:
    """Network ``number`` of 256: 198.18.``number``.0/24 on the bridge ``nwlab<number>``."""

    number: int

    @property
    def bridge(self) -> str:
        return f"nwlab{self.number}"

    @property
    def gateway(self) -> str:
        """The address of this machine on the bridge."""
        return f"198.18.{self.number}.1"

    def address(self, host: int) -> str:
        return f"198.18.{self.number}.{host + 10}"

    def pods(self, host: int) -> str:
        """Addresses of the pods of a host. They are known in the host's namespace only: no route leads there."""
        return f"198.19.{host}.0/24"

    def namespace(self, host: int) -> str:
        return f"nwlab{self.number}-{host}"


def free() -> Net:
    """A network that no bridge of this machine has yet. Raises LabError if all are taken."""
    links = {link["ifname"] for link in json.loads(run("ip", "-json", "link", "show"))}
    for number in range(_FIRST, _LAST + 1):
        if Net(number).bridge not in links:
            return Net(number)
    raise LabError("all 256 networks of labs are taken: `python -m hack.hosts clean` removes what earlier ones left")


def up(net: Net) -> None:
    """Raises LabError if another lab took the network first."""
    run("ip", "link", "add", net.bridge, "type", "bridge")
    run("ip", "address", "add", f"{net.gateway}/24", "dev", net.bridge)
    run("ip", "link", "set", net.bridge, "up")


def down(net: Net) -> None:
    subprocess.run(["ip", "link", "delete", net.bridge], capture_output=True, check=False)


def connect(net: Net, host: int) -> None:
    """A namespace for the host. What an interrupted start has left is removed first."""
    disconnect(net, host)
    space, cable = net.namespace(host), _cable(net, host)
    run("ip", "netns", "add", space)
    run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
    run("ip", "link", "set", cable, "master", net.bridge, "up")
    mac = f"02:4e:57:{net.number:02x}:00:{host:02x}"  # the same for the same address, so that no ARP entry is stale
    run("ip", "-n", space, "link", "set", "eth0", "address", mac)
    run("ip", "-n", space, "address", "add", f"{net.address(host)}/24", "dev", "eth0")
    for device in ("eth0", "lo"):
        run("ip", "-n", space, "link", "set", device, "up")
    run("ip", "-n", space, "route", "add", "default", "via", net.gateway)
    run("ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv4.ip_forward=1")


def disconnect(net: Net, host: int) -> None:
    for command in (["netns", "delete", net.namespace(host)], ["link", "delete", _cable(net, host)]):
        subprocess.run(["ip", *command], capture_output=True, check=False)


def _cable(net: Net, host: int) -> str:
    return f"nwl{net.number}v{host}"

"""What a provider may be able to do beside the contract: each is a protocol of its own, found by ``isinstance``.

A provider has those whose methods it has; nothing else declares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from providers.base.contract import Host, HostIdentity

LONGEST_CONSOLE = 65536
"""Characters that ``ShowsConsole.console`` answers at most."""
LONGEST_OUTPUT = 65536
"""Characters that a script of ``RunsScripts`` may print."""


@runtime_checkable
class HoldsConnections(Protocol):
    """A provider that keeps connections or threads from call to call. Optional."""

    async def close(self) -> None:
        """End them: nobody asks it any more."""


@runtime_checkable
class ShowsConsole(Protocol):
    """A provider that can tell what a host has printed, though nobody can reach the host. Optional.

    It is asked for a host that has not joined in time.
    """

    async def console(self, host: Host) -> str:
        """The end of it, at most ``LONGEST_CONSOLE`` characters; "" if there is nothing yet.

        Raises ``ProviderError``.
        """


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of one limit of an account is used. ``resource``: in the cloud's own words, such as ``cores``."""

    resource: str
    used: int
    limit: int
    unit: str = ""


@runtime_checkable
class ShowsQuotas(Protocol):
    """A provider that can tell how much of the limits of its account is used. Optional; asked once a minute at most."""

    async def quotas(self) -> tuple[Quota, ...]:
        """Limits that are set; what is not limited is left out. Raises ``ProviderError``."""


@runtime_checkable
class RebindsHosts(Protocol):
    """A provider whose hosts can be handed to a Machine of another management cluster (docs/adr/0027). Optional.

    Without it the Machines of the provider can't be moved.
    """

    async def rebind(self, host: Host, old: HostIdentity, new: HostIdentity) -> None:
        """Make ``host`` the one of ``new`` if it is that of ``old``: its UID and its management cluster change, nothing
        else does, and nothing on it is restarted. Nothing is done to one that is that of ``new`` already.

        Raises ``ProviderError``: Conflict if it is that of another Machine or another management cluster, or if ``new``
        has another host; NotFound if there is no such host.
        """


@runtime_checkable
class RebootsHosts(Protocol):
    """A provider that can boot a host anew with all that is on its disks (docs/adr/0030). Optional.

    Without it a sick host is replaced at once.
    """

    async def reboot(self, host: Host, attempt: str) -> None:
        """Boot it anew, whether or not it answers, and come back before it is up. ``attempt``: at most 63 characters of
        a label's value, another one for each reboot that is asked for. Called again with the same one, also by another
        process, it reboots nothing a second time. Once it is seen to have taken place ``Host.rebooted`` is ``attempt``.

        Raises ``ProviderError``: NotFound if the host is gone, Timeout if nothing reaches it.
        """


class Channel(Protocol):
    """A connection to a port of a host: bytes in both directions. Its methods raise OSError once it is broken."""

    async def read(self) -> bytes:
        """What has come, at most 64 KiB; b"" at the end."""

    async def write(self, content: bytes) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class ReachesPorts(Protocol):
    """A provider with a way of its own to what its hosts listen at, such as SSH (docs/adr/0072). Optional.

    It is taken where no direct way leads to etcd's members from here.
    """

    async def connect(self, host: Host, port: int) -> Channel:
        """To a TCP port at the host's own ``localhost``, and never to anything that is not the host.

        Raises ``ProviderError``: NotFound if the host is gone or not this Machine's any more, Unavailable if nothing
        listens there or the host lets nobody through, Timeout if nothing reaches it.
        """


@runtime_checkable
class RunsScripts(Protocol):
    """A provider that runs short scripts on its hosts and brings what they print (docs/adr/0072). Optional.

    Without it etcd is saved on a host as a part of its upgrade in place alone.
    """

    async def run_script(self, host: Host, script: str, within: float) -> str:
        """Run a POSIX shell script as root, at most ``within`` seconds; what it prints, ``LONGEST_OUTPUT`` characters
        at most. It has to be safe to run twice, also at the same time: a connection that is cut is made anew.

        Raises ``ProviderError``: NotFound if the host is gone or not this Machine's any more, Timeout if nothing
        reaches it or the time is over; any other class, with the end of what it says at stderr, if the script fails.
        """

"""What a provider may be able to do beside the contract: each is a protocol of its own, found by ``isinstance``.

A provider has those whose methods it has; nothing else declares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from providers.base.contract import Host, HostIdentity

LONGEST_CONSOLE = 65536
"""Characters that ``ShowsConsole.console`` answers at most."""


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

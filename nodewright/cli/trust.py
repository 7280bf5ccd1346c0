"""Options about what objects of namespaces may have this process do: which servers it asks, which kinds it makes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.exits import USAGE, CliError

if TYPE_CHECKING:
    from api.remediation import TemplateKind
    from nodewright.runtime.workloads.options import WorkloadOptions
    from providers.base.addresses import AddressPolicy, Network


class WorkloadTls(StrEnum):
    """As ``nodewright.runtime.kube.servers.Tls``, which costs an import of the runtime."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    PLAIN = "plain"


RemediationKinds = Annotated[
    str,
    typer.Option(
        "--remediation-kinds",
        metavar="KIND.GROUP,...",
        help="Kinds of templates that MachineHealthChecks may name, as RebootTemplate.remedy.example.com.",
        show_default="none",
    ),
]
TlsOption = Annotated[
    WorkloadTls,
    typer.Option(
        "--workload-tls",
        help="What API servers in kubeconfig Secrets must have: unverified takes insecure-skip-tls-verify, plain http.",
    ),
]
Memory = Annotated[
    int,
    typer.Option(
        "--workload-memory", metavar="MIB", min=1, help="Memory that the objects of one workload cluster may take."
    ),
]
AllowCidrs = Annotated[
    str,
    typer.Option(
        "--server-allow-cidrs",
        metavar="CIDR,...",
        help="The only addresses of servers that Secrets may name. [default: all but metadata services and, in a pod, "
        "loopback]",
    ),
]
DenyCidrs = Annotated[
    str,
    typer.Option(
        "--server-deny-cidrs", metavar="CIDR,...", help="Addresses that they may not have, whatever else is said."
    ),
]
PowerCommands = Annotated[
    Path | None,
    typer.Option(
        "--power-commands",
        metavar="FILE",
        help="Commands that reboot hosts which hang, by the names that SSHHostPools may give.",
        show_default="none",
    ),
]


@dataclass(frozen=True, slots=True)
class Trust:
    """As they are typed. The methods raise CliError (usage) naming the option."""

    remediation_kinds: RemediationKinds = ""
    workload_tls: TlsOption = WorkloadTls.VERIFIED
    workload_memory: Memory = 512
    server_allow_cidrs: AllowCidrs = ""
    server_deny_cidrs: DenyCidrs = ""
    power_commands: PowerCommands = None

    def template_kinds(self) -> frozenset[TemplateKind]:
        from api.remediation import template_kind  # noqa: PLC0415

        try:
            return frozenset(template_kind(each) for each in self.remediation_kinds.split(",") if each.strip())
        except ValueError as error:
            raise CliError(f"--remediation-kinds: {error}", code=USAGE) from error

    def addresses(self) -> AddressPolicy:
        from dataclasses import replace  # noqa: PLC0415

        from providers.base.addresses import default_policy  # noqa: PLC0415

        allowed = _cidrs("--server-allow-cidrs", self.server_allow_cidrs)
        denied = _cidrs("--server-deny-cidrs", self.server_deny_cidrs)
        return replace(default_policy(), allowed=allowed, denied=denied)

    def workloads(self) -> WorkloadOptions:
        from nodewright.runtime.kube.servers import ServerPolicy, Tls  # noqa: PLC0415
        from nodewright.runtime.workloads.options import WorkloadOptions  # noqa: PLC0415

        servers = ServerPolicy(Tls(self.workload_tls.value), self.addresses())
        return WorkloadOptions(memory=self.workload_memory << 20, servers=servers)

    def take_effect(self) -> None:
        """For providers, which look at the policy of the process."""
        from providers.base import addresses, power  # noqa: PLC0415

        addresses.use(self.addresses())
        if self.power_commands is None:
            return
        try:
            power.use(power.read(self.power_commands.read_text()))
        except (OSError, ValueError) as error:
            raise CliError(f"--power-commands: {self.power_commands}: {error}", code=USAGE) from error


def _cidrs(option: str, text: str) -> tuple[Network, ...]:
    from providers.base.addresses import networks  # noqa: PLC0415

    try:
        return networks(text.split(","))
    except ValueError as error:
        raise CliError(f"{option}: {error}", "Write it as 10.0.0.0/8,2001:db8::/32", USAGE) from error

"""``nodewright gateway``."""

from __future__ import annotations

import typer

from nodewright.cli.gateways import cloudpool, cloudpool_proxy, externalgrpc
from nodewright.cli.help import Command, OfGo

HELP = """Serve other programs, each in its own protocol.

Exit code 0: stopped as asked; 1: failed; 2: wrong usage.
"""

group = typer.Typer(help=HELP, no_args_is_help=True)
group.add_typer(externalgrpc.group, name="externalgrpc", short_help="The Cluster Autoscaler, over gRPC")
group.command(
    "cloudpool-proxy", cls=OfGo, help=cloudpool_proxy.HELP, short_help="Stand in front of a cloudpool, and drain first"
)(cloudpool_proxy.command)
group.command(
    "cloudpool", cls=Command, help=cloudpool.HELP, short_help="MachineDeployments and MachineSets as cloudpools"
)(cloudpool.command)

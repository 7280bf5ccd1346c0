"""``nodewright gateway externalgrpc``, and ``… certs``."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nodewright.cli.cluster.access import Target, connect, plain_errors
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.flags import with_flags
from nodewright.cli.help import Command, Group
from nodewright.cli.options import Context, Format, Kubeconfig, LogFormat, LogLevel, Verbosity
from nodewright.cli.ports import must_be_free
from nodewright.cli.screen import say
from nodewright.gateways.callers import Listening
from providers.base.extras import install_command

if TYPE_CHECKING:
    from controllers.autoscaler.prices import PriceTable
    from nodewright.gateways.externalgrpc.gateway import GatewayOptions
    from nodewright.gateways.externalgrpc.server import ServerOptions
    from nodewright.gateways.externalgrpc.tls import ServerTls
    from nodewright.runtime.kube.connection import Connection

HELP = """Serve the Cluster Autoscaler over gRPC (`--cloud-provider=externalgrpc`), until SIGTERM or Ctrl-C.

It answers from memory and changes nothing but the replicas of MachineDeployments and MachineSets that have bounds, and
marks on Machines. Certificates that were renewed are taken without a restart. Exit code 0: stopped as asked; 1: failed;
2: wrong usage.
"""

group = typer.Typer(cls=Group, help=HELP, invoke_without_command=True)


@dataclass(frozen=True, slots=True)
class TlsFlags:
    """As they are typed. ``given``: the files among them."""

    cert_file: Annotated[
        Path | None,
        typer.Option("--tls-cert-file", metavar="FILE", help="Certificate, with its chain behind it (PEM)."),
    ] = None
    key_file: Annotated[Path | None, typer.Option("--tls-private-key-file", metavar="FILE", help="Its key (PEM).")] = (
        None
    )
    client_ca_file: Annotated[
        Path | None,
        typer.Option("--client-ca-file", metavar="FILE", help="Callers need a certificate of one of these CAs (PEM)."),
    ] = None
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve plaintext to anybody who can reach it, also beyond loopback.")
    ] = False

    @property
    def given(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.cert_file, self.key_file, self.client_ca_file) if path is not None)


@dataclass(frozen=True, slots=True)
class AddressFlags:
    """Where calls are taken."""

    listen: Annotated[str, typer.Option("--listen", metavar="HOST", help="Where to listen.")] = "127.0.0.1"
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes any free one.")] = (
        8086
    )


@dataclass(frozen=True, slots=True)
class ServeFlags:
    """What is served, and how."""

    reflection: Annotated[bool, typer.Option("--reflection", help="Serve gRPC reflection as well.")] = False
    deadline: Annotated[
        float, typer.Option("--deadline", min=0.1, metavar="SECONDS", help="Longest time for one change of a size.")
    ] = 10.0
    max_concurrent_calls: Annotated[
        int, typer.Option("--max-concurrent-calls", min=1, metavar="N", help="Further calls are refused.")
    ] = 256
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="Serve groups of it only. [default: all]")
    ] = ""
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NAME", help="Serve groups of this Cluster only. [default: all]")
    ] = ""
    gpu_label: Annotated[str, typer.Option("--gpu-label", metavar="LABEL", help="Label of Nodes with GPUs.")] = (
        "cluster-api/accelerator"
    )
    node_group_options: Annotated[
        bool,
        typer.Option("--node-group-options", help="Answer NodeGroupGetOptions from annotations of the groups."),
    ] = False
    price_table: Annotated[
        Path | None,
        typer.Option(
            "--price-table", metavar="FILE", help="Prices of Nodes and pods (YAML). [default: no prices are given]"
        ),
    ] = None
    provider_shapes: Annotated[
        bool,
        typer.Option(
            "--provider-shapes/--no-provider-shapes", help="Ask providers what hosts are like that do not exist yet."
        ),
    ] = True
    metrics_listen: Annotated[
        str, typer.Option("--metrics-listen", metavar="HOST", help="Where health and metrics listen.")
    ] = "127.0.0.1"
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="N",
            min=0,
            max=65535,
            help="Serve health and metrics there. [default: not served]",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class _How:
    address: AddressFlags
    tls: TlsFlags
    serve: ServeFlags


@group.callback()
@with_flags
def serve(  # noqa: PLR0913  (one parameter per group of options)
    *,
    ctx: typer.Context,
    address: AddressFlags,
    tls: TlsFlags,
    serving: ServeFlags,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    log_level: LogLevel = Verbosity.INFO,
    log_format: LogFormat = Format.AUTO,
) -> None:
    if ctx.invoked_subcommand is not None:
        return
    how = _How(address, tls, serving)
    _check(how)
    must_be_free(address.listen, {"--port": address.port})
    must_be_free(serving.metrics_listen, {"--metrics-port": serving.metrics_port})
    from nodewright.gateways.externalgrpc.core_log import redirected  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.loop import new_event_loop  # noqa: PLC0415
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    with redirected() if how.tls.given else nullcontext():
        configure(json=log_format.json, level=log_level.value)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(Target(kubeconfig, context), how))


@group.command("certs", cls=Command, short_help="Make certificates for it and for the Cluster Autoscaler")
def certs(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where to write them.")],
    host: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME", help="Name or address to be called by; repeat it. [default: loopback]"),
    ] = None,
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="Port to be called at.")] = 8086,
    days: Annotated[
        int, typer.Option("--days", metavar="N", min=1, max=3650, help="How long they are good for.")
    ] = 365,
) -> None:
    """Make a CA, a server's and a client's certificate, and say how to use them.

    A CA that is there already is used again: so both certificates are renewed. The first --host is the one that the
    Cluster Autoscaler is configured to call.
    """
    from nodewright.gateways.externalgrpc import certificates  # noqa: PLC0415

    hosts = tuple(host or ("localhost", "127.0.0.1"))
    folder = out.absolute()
    try:
        written = certificates.write_all(folder, certificates.CertificateOptions(hosts, days))
    except certificates.CertificateError as error:
        raise CliError(str(error), "Choose another folder with --out, or other names with --host") from error
    config = folder / "cloud-config.yaml"
    config.write_text(certificates.cloud_config(_address(hosts[0], port), folder))
    for path in (*written, config):
        say(f"wrote {path}")
    say(
        f"""
Serve with:
  nodewright gateway externalgrpc --port={port} --tls-cert-file={folder / "server.crt"} \\
    --tls-private-key-file={folder / "server.key"} --client-ca-file={folder / "ca.crt"}
Call with:
  cluster-autoscaler --cloud-provider=externalgrpc --cloud-config={config}
{config.name} says:
{config.read_text()}"""
    )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _check(how: _How) -> None:
    """Plaintext is for loopback, unless somebody says that it is meant."""
    tls = how.tls
    if tls.given and tls.insecure:
        raise CliError("--insecure and certificates contradict each other", "Leave one of them out", USAGE)
    if tls.given and len(tls.given) < 3:
        needed = "--tls-cert-file, --tls-private-key-file and --client-ca-file"
        raise CliError(f"{needed} belong together: the Cluster Autoscaler has no other form of TLS", "", USAGE)
    if Listening(how.address.listen, bool(tls.given), tls.insecure).refused:
        hint = "`nodewright gateway externalgrpc certs` makes them; --insecure serves plaintext all the same"
        raise CliError(f"certificates are needed to listen on {how.address.listen}, which is not loopback", hint, USAGE)


async def _serve(target: Target, how: _How) -> None:
    options = _options(how)
    connection = await connect(target)
    try:
        with plain_errors():
            await _run(connection, options, how)
    except OSError as error:
        raise CliError(f"can't listen: {error.strerror or error}", "Choose another --port or --listen") from error
    say("stopped")


async def _run(connection: Connection, options: GatewayOptions, how: _How) -> None:
    from nodewright.gateways.externalgrpc.gateway import Gateway  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.memory import keep_settled  # noqa: PLC0415
    from nodewright.runtime.signals import stop_on_signals  # noqa: PLC0415
    from nodewright.runtime.telemetry.observability import ObservabilityServer  # noqa: PLC0415

    stop = asyncio.Event()
    stop_on_signals(stop)
    gateway = Gateway(connection, options)
    async with AsyncExitStack() as stack:
        if how.serve.metrics_port is not None:
            watching = ObservabilityServer(how.serve.metrics_listen, how.serve.metrics_port, gateway)
            await stack.enter_async_context(watching)
        safety = "mutual TLS" if options.server.tls is not None else "plaintext"

        def ready(address: str) -> None:
            stack.callback(asyncio.create_task(keep_settled(), name="memory").cancel)
            say(f"ready: serving externalgrpc at {address} ({safety})")

        await gateway.run(stop, ready)


def _server_options(how: _How, tls: ServerTls | None) -> ServerOptions:
    from nodewright.gateways.externalgrpc.server import ServerOptions  # noqa: PLC0415

    return ServerOptions(
        host=how.address.listen,
        port=how.address.port,
        tls=tls,
        reflection=how.serve.reflection,
        deadline=how.serve.deadline,
        at_once=how.serve.max_concurrent_calls,
    )


def _options(how: _How) -> GatewayOptions:
    """Raises CliError."""
    tls = _credentials(how.tls)
    from controllers.scaling.node_group import Filter  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.gateway import GatewayOptions  # noqa: PLC0415
    from nodewright.gateways.externalgrpc.reads import ReadOptions  # noqa: PLC0415
    from providers.base.registry import Registry  # noqa: PLC0415

    return GatewayOptions(
        only=Filter(how.serve.namespace, how.serve.cluster),
        reads=ReadOptions(how.serve.gpu_label, how.serve.node_group_options, _prices(how.serve.price_table)),
        server=_server_options(how, tls),
        providers=Registry.installed() if how.serve.provider_shapes else None,
    )


def _credentials(tls: TlsFlags) -> ServerTls | None:
    try:
        from nodewright.gateways.externalgrpc.tls import ServerTls, TlsError, TlsFiles  # noqa: PLC0415
    except ModuleNotFoundError as error:
        hint = f"Install the extra: {install_command('externalgrpc')}"
        raise CliError(f"{error.name} is not installed", hint) from error
    if not tls.given:
        return None
    try:
        return ServerTls(TlsFiles(*tls.given))
    except TlsError as error:
        raise CliError(str(error), "`nodewright gateway externalgrpc certs` makes all that is needed") from error


def _prices(path: Path | None) -> PriceTable | None:
    if path is None:
        return None
    from controllers.autoscaler.prices import PriceTableError, read_table  # noqa: PLC0415

    try:
        return read_table(path.read_text())
    except OSError as error:
        raise CliError(f"{path}: {error.strerror}") from error
    except PriceTableError as error:
        raise CliError(f"{path}: {error}") from error

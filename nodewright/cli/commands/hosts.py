"""``nodewright hosts``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.choosing import AllNamespaces
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import FAILED, USAGE, CliError
from nodewright.cli.help import Command
from nodewright.cli.options import Context, Kubeconfig, Namespace
from nodewright.cli.screen import console, say
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from api.sshhostpool import SSHHost
    from nodewright.cli.hosts.showing import Checked
    from nodewright.runtime.kube.client import KubeClient
    from providers.ssh.connections import Connections
    from providers.ssh.pool import Pool

HELP = """Look after the hosts of SSHHostPools: your own machines, which Machines take over SSH.

Exit code 0: done, nothing is wrong; 1: something is; 2: wrong usage.
"""
group = typer.Typer(help=HELP, no_args_is_help=True)
PoolName = Annotated[str, typer.Argument(metavar="POOL", help="An SSHHostPool.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")]


@group.callback()
def hosts() -> None:
    """Look after the hosts of SSHHostPools."""


@dataclass(frozen=True, slots=True)
class _At:
    client: KubeClient
    namespace: str

    async def pool(self, name: str) -> Pool:
        from controllers.kernel.refs import Key  # noqa: PLC0415
        from nodewright.cli.hosts.pools import pool_named  # noqa: PLC0415

        return await pool_named(self.client, Key(self.namespace, name))


def _run(target: Target, namespace: str | None, act: Callable[[_At], Coroutine[Any, Any, None]]) -> None:
    async def connected() -> None:
        connection = await connect(target)
        async with client_of(connection) as client:
            await act(_At(client, namespace or connection.namespace))

    asyncio.run(connected())


@group.command("list", cls=Command, short_help="Show the hosts of one pool, or of all")
def list_(
    pool: Annotated[str | None, typer.Argument(metavar="[POOL]", help="Only this SSHHostPool.")] = None,
    output: OutputOption = Output.TEXT,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show the hosts as the controllers saw them last: state, Machine, and why one can't be had."""

    if pool and all_namespaces:
        raise CliError("a pool is in one namespace", "Leave out -A, or the name of the pool", USAGE)

    async def act(at: _At) -> None:
        from nodewright.cli.hosts.pools import pools  # noqa: PLC0415

        found = [await at.pool(pool)] if pool else await pools(at.client, "" if all_namespaces else at.namespace)
        _show_pools(found, output, namespaces=all_namespaces)

    _run(Target(kubeconfig, context), namespace, act)


def _show_pools(found: Sequence[Pool], output: Output, *, namespaces: bool) -> None:
    from nodewright.cli.hosts.showing import pools_lines, pools_value  # noqa: PLC0415

    if output is not Output.TEXT:
        show(pools_value(found), output)
        return
    out = console()
    for line in pools_lines(found, namespaces=namespaces):
        out.print(line, soft_wrap=True)


@group.command("check", cls=Command, short_help="Log in on hosts and say what is wrong with them")
def check(
    pool: PoolName,
    names: Annotated[list[str] | None, typer.Argument(metavar="[HOST]", help="Only these. [default: all]")] = None,
    output: OutputOption = Output.TEXT,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Log in on each host with the key of the pool's Secret and look whether Machines can live there.

    Nothing is changed. You need the right to read the pool and its Secret.
    """

    async def act(at: _At) -> None:
        from nodewright.cli.hosts.pools import connections, hosts_named  # noqa: PLC0415
        from nodewright.cli.hosts.showing import checked_lines, checked_value  # noqa: PLC0415

        found = await at.pool(pool)
        chosen = hosts_named(found, names or ())
        async with connections(at.client, at.namespace) as ways:
            checked = await asyncio.gather(*(_checked(ways, found, host) for host in chosen))
        if output is not Output.TEXT:
            show(checked_value(checked), output)
        else:
            out = console()
            for line in checked_lines(checked):
                out.print(line, soft_wrap=True)
        if any(one.findings for one in checked):
            raise typer.Exit(FAILED)

    _run(Target(kubeconfig, context), namespace, act)


async def _checked(ways: Connections, pool: Pool, host: SSHHost) -> Checked:
    from nodewright.cli.hosts.showing import Checked  # noqa: PLC0415
    from providers.base.errors import ProviderError  # noqa: PLC0415
    from providers.ssh import remote  # noqa: PLC0415
    from providers.ssh.checkup import Finding, findings  # noqa: PLC0415
    from providers.ssh.trouble import HostError  # noqa: PLC0415

    address = f"{host.address}:{host.port}"
    try:
        answer = await ways.run(host, pool.secret, remote.check(), step="check")
    except HostError as error:
        return Checked(host.name, address, "", (Finding(str(error), error.remedy),))
    except ProviderError as error:
        raise CliError(error.message) from error
    system = " ".join(f"{answer.get('system', '')} {answer.get('machine', '')}".split())[:80]
    return Checked(host.name, address, system, findings(answer, time.time()))


@group.command("add", cls=Command, short_help="Put a machine into a pool, with its host key")
def add(  # noqa: PLR0913, PLR0917  (one parameter per option)
    pool: PoolName,
    name: Annotated[str, typer.Argument(metavar="HOST", help="Its name in the pool.")],
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="IP address or DNS name of its sshd.")],
    port: Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="Port of its sshd.")] = 22,
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Whom to log in as; not root: one with sudo.")
    ] = "root",
    zone: Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="Failure domain that it is in.")] = None,
    label: Annotated[list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="Repeatable.")] = None,
    fingerprint: Annotated[
        str | None,
        typer.Option("--fingerprint", metavar="FINGERPRINT", help="What its key has to be; then nobody asks."),
    ] = None,
    yes: Yes = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Read the host key of a machine once, show its fingerprint, and write both into the pool if you agree.

    Compare it with what `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints on the machine's console.
    """

    async def act(at: _At) -> None:
        from nodewright.cli.hosts.keys import host_key  # noqa: PLC0415
        from nodewright.cli.hosts.pools import add_host  # noqa: PLC0415

        found = await at.pool(pool)
        if name in found.hosts:
            raise CliError(f"SSHHostPool {pool} has a host {name} already", "Choose another name, or edit the pool")
        entry = _entry(name, address, port, user)
        entry |= {"zone": zone} if zone else {}
        entry |= {"labels": _labels(label)} if label else {}
        key = await host_key(address, port)
        if fingerprint and fingerprint != key.fingerprint:
            raise CliError(f"{address} shows the key {key.fingerprint}, not {fingerprint}", "It may be another machine")
        say(f"{address}:{port} shows the {key.algorithm} key {key.fingerprint}")
        if not fingerprint and not yes and not typer.confirm("Is that the machine's?"):
            raise CliError("nothing was changed", "Compare it with the machine's console")
        await add_host(at.client, found, {**entry, "hostKeys": [key.text]})
        say(f"sshhostpool/{pool}: host {name} added; `nodewright hosts check {pool} {name}` looks at it")

    _run(Target(kubeconfig, context), namespace, act)


def _entry(name: str, address: str, port: int, user: str) -> dict[str, Any]:
    return {
        "name": name,
        "address": address,
        **({"port": port} if port != 22 else {}),
        **({"user": user} if user != "root" else {}),
    }


def _labels(given: list[str]) -> dict[str, str]:
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CliError(f"--label: {text!r} is not like disk=ssd", code=USAGE)
        found[key] = value
    return found


@group.command("release", cls=Command, short_help="Take a host out of quarantine")
def release(
    pool: PoolName,
    name: Annotated[str, typer.Argument(metavar="HOST", help="The host.")],
    yes: Yes = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Let Machines have a quarantined host again, once you have seen to what was left on it."""

    async def act(at: _At) -> None:
        from nodewright.cli.hosts.pools import connections, hosts_named  # noqa: PLC0415
        from providers.base.errors import ProviderError  # noqa: PLC0415
        from providers.ssh import remote  # noqa: PLC0415
        from providers.ssh.trouble import HostError  # noqa: PLC0415

        found = await at.pool(pool)
        (host,) = hosts_named(found, [name])
        async with connections(at.client, at.namespace) as ways:
            try:
                answer = await ways.run(host, found.secret, remote.check(), step="check")
                _must_be_in_quarantine(name, answer)
                say(f"host {name} is in quarantine: {answer['quarantine']}")
                if not yes and not typer.confirm("Has that been seen to?"):
                    raise CliError("nothing was changed")
                if "freed" not in await ways.run(host, found.secret, remote.free(), step="free"):
                    raise CliError(f"host {name} was claimed meanwhile: nothing was changed")
            except HostError as error:
                raise CliError(str(error), error.remedy) from error
            except ProviderError as error:
                raise CliError(error.message) from error
        say(f"host {name} may be had again")

    _run(Target(kubeconfig, context), namespace, act)


def _must_be_in_quarantine(host: str, answer: Mapping[str, str]) -> None:
    if "claim" in answer or "quarantine" not in answer:
        what = "is a Machine's" if "claim" in answer else "is not in quarantine"
        raise CliError(f"host {host} {what}: nothing was changed", "`nodewright hosts list` shows it")

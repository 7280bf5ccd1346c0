"""``nodewright version``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.options import Context, Kubeconfig
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, OutputOption, show

if TYPE_CHECKING:
    from nodewright.runtime.kube.client import KubeClient

HELP = """Print the version of Nodewright, of Python and of the API it serves; with --server also what a cluster has.

Exit code 0: printed; 1: the cluster does not answer; 2: wrong usage.
"""


def command(
    server: Annotated[bool, typer.Option("--server", help="Ask the cluster for its version and CRDs, too.")] = False,
    output: OutputOption = Output.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    if (kubeconfig or context) and not server:
        raise CliError("--kubeconfig and --context name a cluster, and none is asked", "Add --server", USAGE)
    facts = _own()
    found = asyncio.run(_ask(Target(kubeconfig, context))) if server else None
    if output is not Output.TEXT:
        show({**facts, **(found or {})}, output)
        return
    say(f"nodewright {facts['nodewright']} (Python {facts['python']}, {facts['api']})")
    if found is not None:
        say(f"server {found['server']}")
        for name, state in found["crds"].items():
            say(f"{name}: {state}")


def _own() -> dict[str, str]:
    import importlib.metadata  # noqa: PLC0415
    import platform  # noqa: PLC0415

    try:
        version = importlib.metadata.version("nodewright")
    except importlib.metadata.PackageNotFoundError as error:
        raise CliError("nodewright is not installed here", "Run `make setup`") from error
    return {"nodewright": version, "python": platform.python_version(), "api": "cluster.k8s.io/v1alpha1"}


async def _ask(target: Target) -> dict[str, Any]:
    from nodewright.crds import load_crds  # noqa: PLC0415

    async with client_of(await connect(target)) as client:
        answer = await client.version()
        crds = {crd["metadata"]["name"]: await _state(client, crd) for crd in load_crds()}
    return {"server": str(answer.get("gitVersion") or "unknown"), "crds": crds}


async def _state(client: KubeClient, crd: dict[str, Any]) -> str:
    """What discovery says of one definition: everybody with a login may read that."""
    from nodewright.runtime.kube.errors import ApiError  # noqa: PLC0415

    spec = crd["spec"]
    served: list[str] = []
    for version in (each["name"] for each in spec["versions"] if each.get("served")):
        try:
            listed = await client.resources(spec["group"], version)
        except ApiError as error:
            if not error.not_found:
                raise
            continue
        served += [version] if any(each.get("name") == spec["names"]["plural"] for each in listed) else []
    return f"{', '.join(served)} served" if served else "missing; `nodewright install` brings it"

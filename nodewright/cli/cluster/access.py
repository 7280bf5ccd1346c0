"""Reach a cluster for one command, with errors that say what to do."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodewright.cli.exits import CliError

if TYPE_CHECKING:
    from nodewright.runtime.kube.client import KubeClient
    from nodewright.runtime.kube.connection import Connection

UP_KUBECONFIG = Path(".nodewright/up/kubeconfig")
"""Where ``nodewright up`` writes it without options."""
LOCAL_HINT = "Start one with `nodewright up`, or name a kubeconfig with --kubeconfig or $KUBECONFIG"


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster is meant; both empty: as kubectl would choose."""

    kubeconfig: Path | None = None
    context: str | None = None


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn what a cluster's client raises into one clear line."""
    from nodewright.runtime.kube.errors import ApiError, ConfigurationError, NoAnswer  # noqa: PLC0415

    try:
        yield
    except ConfigurationError as error:
        raise CliError(str(error), error.remedy or _where_to_look()) from error
    except NoAnswer as error:
        raise CliError(f"no answer from the cluster: {error}", f"See whether it runs. {_where_to_look()}") from error
    except ApiError as error:
        raise _refusal(error.code, error.message) from error


def _where_to_look() -> str:
    """A user who has started a plane in this folder has mostly forgotten to export its kubeconfig."""
    if UP_KUBECONFIG.is_file() and os.environ.get("KUBECONFIG") != str(UP_KUBECONFIG.absolute()):
        return f"Use that of `nodewright up` here: export KUBECONFIG={UP_KUBECONFIG.absolute()}"
    return LOCAL_HINT


def _refusal(code: int, message: str) -> CliError:
    if code == 401:
        return CliError("the cluster does not know you", "Renew the credentials in your kubeconfig")
    if code == 403:
        return CliError(f"the cluster refuses: {message}", "Ask for a role that allows it")
    if code == 404:
        return CliError("the cluster does not serve Nodewright's kinds", "Install them first: `nodewright install`")
    return CliError(f"the cluster refuses: {message}")


async def connect(target: Target) -> Connection:
    """The connection that ``target`` means. Raises CliError."""
    from nodewright.runtime.kube.kubeconfig import find_connection  # noqa: PLC0415

    with plain_errors():
        return await find_connection(target.kubeconfig, target.context)


@asynccontextmanager
async def client_of(connection: Connection) -> AsyncIterator[KubeClient]:
    """A client for the length of one command. What it raises becomes CliError."""
    from nodewright.runtime.kube.client import KubeClient  # noqa: PLC0415

    with plain_errors():
        async with KubeClient(connection, "cli") as client:
            yield client

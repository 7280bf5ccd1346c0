"""SSHHostPools as people see them. Their hosts are asked with the key of the pool's Secret."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from controllers.kernel.refs import Key, guessed_kind, key_of, ref_of
from nodewright.cli.exits import USAGE, CliError
from nodewright.runtime.hosts.credentials import NamespaceSecrets
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, InvalidRequestError
from providers.base.errors import ProviderError
from providers.base.extras import install_command
from providers.ssh.config import API_VERSION
from providers.ssh.pool import POOL_KIND, Pool, read

if TYPE_CHECKING:
    from api.sshhostpool import SSHHost
    from providers.ssh.connections import Connections

POOL = guessed_kind(API_VERSION, POOL_KIND)
_PAGE = 500


async def pools(client: KubeClient, namespace: str) -> list[Pool]:
    """All of a namespace, "" for every namespace, by name. Raises CliError where one can't be read."""
    found, token = [], ""
    while True:
        page = await client.list_page(POOL, _PAGE, token, namespace)
        found += page.items
        token = page.continue_
        if not token:
            return [_read(obj) for obj in sorted(found, key=key_of)]


async def pool_named(client: KubeClient, key: Key) -> Pool:
    """Raises CliError if there is none."""
    try:
        return _read(await client.get(POOL, key))
    except InvalidRequestError as error:
        raise CliError(str(error), code=USAGE) from error
    except ApiError as error:
        if error.not_found:
            hint = "`kubectl get sshhostpools -A` lists them, -n names another namespace"
            raise CliError(f"there is no SSHHostPool {key}", hint) from error
        raise


def hosts_named(pool: Pool, names: Iterable[str]) -> list[SSHHost]:
    """Those hosts, or all without ``names``. Raises CliError for one that the pool has not."""
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in pool.hosts:
            known = ", ".join(list(pool.hosts)[:5])
            raise CliError(f"SSHHostPool {pool.name} has no host {name}", f"It has {known}")
    return [pool.hosts[name] for name in wanted] or list(pool.hosts.values())


async def add_host(client: KubeClient, pool: Pool, entry: Mapping[str, Any]) -> None:
    """Guarded: a pool that somebody has changed meanwhile is left as it is. Raises CliError."""
    hosts = [*pool.object["spec"]["hosts"], dict(entry)]
    version = str(pool.object["metadata"].get("resourceVersion") or "")
    try:
        await client.merge_patch(ref_of(POOL, pool.object), {"spec": {"hosts": hosts}}, resource_version=version)
    except ApiError as error:
        if error.code == 409:
            raise CliError(f"SSHHostPool {pool.name} was changed meanwhile", "Try again") from error
        raise


@asynccontextmanager
async def connections(client: KubeClient, namespace: str) -> AsyncIterator[Connections]:
    """Raises CliError without asyncssh."""
    try:
        from providers.ssh.connections import Connections  # noqa: PLC0415  (asyncssh: an extra)
    except ModuleNotFoundError as error:
        raise CliError(f"{error.name} is missing", install_command("ssh")) from error
    made = Connections(NamespaceSecrets(client, namespace))
    try:
        yield made
    finally:
        await made.close()


def _read(obj: Mapping[str, Any]) -> Pool:
    try:
        return read(obj)
    except ProviderError as error:
        raise CliError(error.message) from error

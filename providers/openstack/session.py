"""Requests to one cloud, off the event loop: the SDK is synchronous, so each runs in a thread of a small pool.

The SDK logs in, finds the endpoints and renews tokens. Bodies stay plain JSON: its resource objects cost seven times
the CPU of the request. Only reads are repeated: a repeated POST would make a second server.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from providers.base.errors import ErrorClass, ProviderError
from providers.base.extras import install_command
from providers.openstack import errors
from providers.openstack.login import Login

THREADS = 8
REQUEST_SECONDS = 30.0
MICROVERSION = "2.79"
"""Of Nova: Train, 2019. Older ones ignore filters in silence and leave out servers whose cell is down."""
COMPUTE, NETWORK, IMAGE = "compute", "network", "image"
LOAD_BALANCER, VOLUME = "load_balancer", "block_storage"
"""Services, by the SDK's names for them."""
READ_AGAIN = (0.2, 1.0)
"""Seconds before a request that changes nothing is made again."""
_PASSES = {ErrorClass.UNAVAILABLE, ErrorClass.INTERNAL, ErrorClass.CONFLICT, ErrorClass.RATE_LIMITED}
_LOGGERS = ("keystoneauth", "openstack", "urllib3", "requests")

Connect = Callable[[Login, str], Any]
"""Makes an SDK connection from a login and the path of its CA ("" for none); blocks."""


class Requests(Protocol):
    """What the rest of the provider needs of a cloud. Raises ProviderError, or ``errors.Ambiguous``."""

    async def get(self, service: str, path: str) -> dict[str, Any]: ...

    async def change(self, service: str, method: str, path: str, body: Any = None) -> dict[str, Any]: ...


def connect(login: Login, authority: str) -> Any:
    """A connection by the SDK alone: no environment variable and no file of this machine has a say in it."""
    warnings.filterwarnings("ignore", module=r"openstack\.")  # it speaks of its own parts that nobody uses here
    try:
        import openstack  # noqa: PLC0415  (costs a second; only in a thread, and only where it is used)
    except ImportError:
        text = f"openstacksdk is not installed: {install_command('openstack')}"
        raise ProviderError(ErrorClass.UNAVAILABLE, text) from None

    for name in _LOGGERS:  # their debug lines show requests, user data included
        logging.getLogger(name).setLevel(logging.WARNING)
    options = {**login.options, **({"cacert": authority} if authority else {})}
    from providers.openstack.transport import harden  # noqa: PLC0415  (needs the SDK's libraries)

    # in the User-Agent of each request
    ours: dict[str, Any] = {"app_name": "nodewright", "app_version": version("nodewright")}
    connection = openstack.connect(
        load_yaml_config=False, load_envvars=False, api_timeout=REQUEST_SECONDS, **ours, **options
    )
    harden(connection, 2 * REQUEST_SECONDS)
    return connection


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


class Session:
    """``login`` is asked when the first request is made, and again once the cloud has refused the one it had."""

    def __init__(
        self, login: Callable[[], Awaitable[Login]], connector: Connect = connect, threads: int = THREADS
    ) -> None:
        self._login = login
        self._connector = connector
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="openstack")
        self._connection: Any = None
        self._connecting = asyncio.Lock()
        self._secrets: tuple[str, ...] = ()
        self._files: tempfile.TemporaryDirectory[str] | None = None

    async def get(self, service: str, path: str) -> dict[str, Any]:
        """Tried again where that may help soon: many Machines wait for one list, and would all fail with it."""
        for pause in READ_AGAIN:
            try:
                return await self._ask(service, "GET", path, None)
            except ProviderError as error:
                asked = error.retry_after or 0.0
                if error.error_class not in _PASSES or asked > READ_AGAIN[-1]:
                    raise
            await asyncio.sleep(max(pause, asked))
        return await self._ask(service, "GET", path, None)

    async def change(self, service: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return await self._ask(service, method, path, body)

    async def close(self) -> None:
        """End its threads and connections, once the requests under way are answered."""
        async with self._connecting:
            connection, self._connection = self._connection, None
        await asyncio.to_thread(self._pool.shutdown)
        if connection is not None:
            await asyncio.to_thread(connection.session.session.close)

    async def _ask(self, service: str, method: str, path: str, body: Any) -> dict[str, Any]:
        reads = method == "GET"
        connection = await self._connected()
        try:
            answer = await self._in_thread(lambda: _send(connection, service, method, path, body))
        except ProviderError:
            raise
        except Exception as error:
            known = errors.of_exception(error, reads)
            if known.error_class is ErrorClass.UNAUTHORIZED:
                self._connection = None
            raise self._redacted(known) from None  # its text may show what was sent
        if answer.status == 401:
            self._connection = None
        if 300 <= answer.status < 400:
            text = f"the cloud answers {service} with a redirect ({answer.status}), which is not followed"
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
        if answer.status >= 400:
            raise self._redacted(errors.of_answer(reads, answer.status, answer.headers, answer.body))
        return answer.body if isinstance(answer.body, dict) else {}

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._connection is None:
                login = await self._login()
                self._secrets = login.secrets
                try:
                    self._connection = await self._in_thread(lambda: self._open(login))
                except ProviderError:
                    raise
                except Exception as error:
                    raise self._redacted(errors.of_exception(error, reads=True)) from None
            return self._connection

    def _open(self, login: Login) -> Any:
        authority = ""
        if login.authority:
            self._files = tempfile.TemporaryDirectory(prefix="nodewright-ca-")  # goes with this object
            path = Path(self._files.name) / "ca.pem"
            path.write_text(login.authority)
            authority = str(path)
        return self._connector(login, authority)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _redacted(self, error: ProviderError) -> ProviderError:
        message = errors.redact(error.message, self._secrets)
        return error if message == error.message else type(error)(error.error_class, message, error.retry_after)


def _send(connection: Any, service: str, method: str, path: str, body: Any) -> _Answer:
    """One request, in a thread. Never repeated, but for a token that has run out."""
    proxy = getattr(connection, service)
    about: dict[str, Any] = {"raise_exc": False, "connect_retries": 0, "status_code_retries": 0}
    if service == COMPUTE:
        about["microversion"] = MICROVERSION
    if body is not None:
        about["json"] = body
    response = proxy.request(path, method, **about)
    try:
        parsed = response.json() if response.content else {}
    except ValueError:
        parsed = {}
    return _Answer(int(response.status_code), response.headers, parsed)

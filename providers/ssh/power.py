"""Run a power command of the administrator's for a host: an own process without this one's environment.

The password is in a file that is in memory alone (memfd) and that only the command has open: nothing of it is an
argument, a variable or on a disk, and nothing is left when this process is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from socket import SOCK_STREAM

from api.secrets import HIDDEN, without_secrets
from api.sshhostpool import SSHHost, SSHPower
from providers.base import addresses, power
from providers.base.contract import Secrets
from providers.base.errors import ErrorClass, ProviderError

PASSWORD = "password"  # noqa: S105
"""Key of the Secret that ``power.secretName`` names."""
AT_ONCE = 4
"""Commands of one pool that run at a time."""
_ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
_LONGEST_OUTPUT = 65_536


@dataclass(frozen=True, slots=True)
class Order:
    """A command that may be run: ``values`` by place, the password apart."""

    where: str
    command: power.PowerCommand
    values: dict[str, str]
    password: bytes


async def order_of(host: SSHHost, namespace: str, secrets: Secrets) -> Order:
    """What to run for ``host``. Raises ProviderError (InvalidConfiguration, NotFound) naming the field of the pool."""
    wanted = host.power
    assert wanted is not None
    where = f"power of host {host.name}"
    command = power.current().get(wanted.command)
    if command is None or not command.may_be_named_in(namespace):
        text = f"{where}: command {wanted.command} is not in --power-commands for namespace {namespace}"
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{text}; the administrator has to add it")
    values = {}
    given = {"address": wanted.address, "user": wanted.user, "password-file": wanted.secret_name}
    for place, field in (("address", "address"), ("user", "user"), ("password-file", "secretName")):
        if command.has(place) and not given[place]:
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{where}: command {command.name} needs {field}")
    if command.has("address"):
        values["address"] = await _judged(where, wanted)
    if command.has("user"):
        values["user"] = wanted.user or ""
    password = b""
    if command.has("password-file"):
        data = await secrets.read(wanted.secret_name or "")
        if PASSWORD not in data:
            text = f"{where}: Secret {wanted.secret_name} has no key {PASSWORD}"
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, text)
        password = data[PASSWORD]
    return Order(where, command, values, password)


async def run(order: Order) -> str:
    """Why it failed, "" if it did not. The process and all that it started have ended then."""
    with _in_memory(order.password) as descriptor:
        argv = order.command.filled({**order.values, "password-file": f"/proc/self/fd/{descriptor}"})
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT, env=_ENVIRONMENT, cwd="/", start_new_session=True,
                pass_fds=(descriptor,),
            )  # fmt: skip
        except OSError as error:
            return f"{order.command.name} can't be run: {error.strerror or type(error).__name__}"
        try:
            async with asyncio.timeout(order.command.seconds):
                output = await _output(process)
                code = await process.wait()
        except TimeoutError:
            return f"{order.command.name} did not end within {order.command.seconds} s"
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
    return "" if code == 0 else f"{order.command.name} ended with {code}: {_shown(output, order.password)}"


async def _judged(where: str, wanted: SSHPower) -> str:
    """The numeric address that the command gets: a name may mean another one a moment later."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(wanted.address, None, type=SOCK_STREAM)
        address = str(found[0][4][0])
        addresses.current().check(address)
    except OSError as error:
        raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"{where}.address: {error.strerror or error}") from error
    return address


@contextlib.contextmanager
def _in_memory(password: bytes) -> Iterator[int]:
    descriptor = os.memfd_create("power")
    try:
        os.write(descriptor, password)
        os.fchmod(descriptor, 0o600)
        yield descriptor
    finally:
        os.close(descriptor)


async def _output(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    kept = b""
    while part := await process.stdout.read(8192):
        kept = (kept + part)[-_LONGEST_OUTPUT:]
    return kept


def _shown(output: bytes, password: bytes) -> str:
    text = output.decode(errors="replace")
    secret = password.decode(errors="replace").strip()
    text = text.replace(secret, HIDDEN) if secret else text
    return " ".join(without_secrets(text)[-300:].split()) or "it said nothing"

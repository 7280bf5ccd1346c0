"""Settings → steps that make a host ready before anything of Kubernetes is installed, and the user's own commands."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from api.bootstrap import BootstrapSpec, HostCommand, HostFile, Proxy, User
from api.durations import parse_duration
from controllers.bootstrap import documents, runtime, worker_users
from controllers.bootstrap.settings import Settings
from controllers.bootstrap.steps import (
    Account,
    Command,
    Configure,
    ContentFile,
    File,
    Files,
    Modules,
    NoSwap,
    Permissive,
    Script,
    Step,
    TimeServers,
)

LISTED = "/var/lib/nodewright/files"
"""Paths of ``spec.bootstrap.files`` that were written to the host, a line each."""
_COMMAND_TIMEOUT = 300.0
PROXY_FILES = {
    unit: f"/etc/systemd/system/{unit}.d/nodewright-proxy.conf" for unit in ("containerd.service", "kubelet.service")
}
"""Unit → where its proxies are."""


def environment(settings: Settings, server_host: str) -> tuple[tuple[str, str], ...]:
    """Variables of proxies for every step, in both spellings, since programs differ in which they read."""
    proxy = settings.spec.proxy
    if proxy is None or not (proxy.http or proxy.https):
        return ()
    variables = _proxy_variables(proxy, settings, server_host)
    return tuple(sorted([*variables, *((name.lower(), value) for name, value in variables)]))


Contents = Mapping[tuple[str, str], bytes]
_NO_CONTENTS: Contents = MappingProxyType({})


def host_steps(settings: Settings, server_host: str, contents: Contents = _NO_CONTENTS) -> tuple[Step, ...]:
    """Users and files first, since the user's commands may need them; then the kernel. ``contents``: see ``Join``."""
    spec = settings.spec
    steps = [*((worker_users.noted(spec),) if spec.users else ()), *user_steps(spec)]
    written = tuple(_file(file, contents) for file in spec.files or () if file.path != runtime.CONFIG)
    if written:
        steps.append(Step("write files", Files((*written, file_list(spec)))))
    steps += proxy_steps(settings, server_host)
    if spec.ntp:
        steps.append(Step("set time servers", TimeServers(tuple(spec.ntp.servers))))
    steps += command_steps(spec.pre_install_commands or (), "before the installation")
    steps += [*kernel_files(spec), Step("apply kernel settings", Command(("sysctl", "--system")))]
    if spec.sysctls:
        steps.append(Step("check kernel settings", Command(("sysctl", "-q", "-p", documents.SYSCTL_FILE))))
    if spec.swap != "Keep":
        steps.append(Step("turn off swap", NoSwap()))
    if spec.selinux == "Permissive":
        steps.append(Step("make SELinux permissive", Permissive()))
    return tuple(steps)


def command_steps(commands: Sequence[HostCommand], when: str) -> tuple[Step, ...]:
    """``when``: part of the name ("before the join"). Each runs until it has succeeded once."""
    return tuple(_command(command, when, number) for number, command in enumerate(commands, 1))


def _command(command: HostCommand, when: str, number: int) -> Step:
    name = f"run {command.name or f'command {number}'} {when}"
    action = Script(command.script) if command.script is not None else Command(tuple(command.argv or ()))
    seconds = parse_duration(command.timeout).total_seconds() if command.timeout else _COMMAND_TIMEOUT
    mark = hashlib.sha256(repr((when, number, command.argv, command.script)).encode()).hexdigest()[:16]
    return Step(name, action, timeout=seconds, once=mark)


def plain_files(spec: BootstrapSpec) -> tuple[File, ...]:
    """Files whose content the spec has: not those of Secrets, and not containerd's configuration."""
    return tuple(_file(file) for file in spec.files or () if file.path != runtime.CONFIG and file.content_from is None)


def content_files(spec: BootstrapSpec) -> tuple[ContentFile, ...]:
    """Those of Secrets, numbered in their order: the ``contents`` of an upgrade are in the same."""
    listed = [file for file in spec.files or () if file.content_from is not None]
    return tuple(
        ContentFile(file.path, number, int(file.permissions, 8) if file.permissions else 0o600, file.owner or "")
        for number, file in enumerate(listed)
    )


def file_list(spec: BootstrapSpec) -> File:
    """The file of the host that names what "write files" has written: a later change finds there what is to go."""
    paths = [file.path for file in spec.files or () if file.path != runtime.CONFIG]
    return File(LISTED, "".join(f"{path}\n" for path in paths), 0o600)


def runtime_file(files: Sequence[HostFile] | None) -> File | None:
    """The user's own configuration of containerd; it takes the place of ours."""
    return next((_file(file) for file in files or () if file.path == runtime.CONFIG), None)


def _file(file: HostFile, contents: Contents = _NO_CONTENTS) -> File:
    mode = int(file.permissions, 8) if file.permissions else 0o644
    if file.content_from is not None:
        source = file.content_from.secret
        masked = f"[key {source.key} of Secret {source.name}]\n".encode()
        content = contents.get((source.name, source.key), masked)
        # Bytes, so that no renderer has to guess; nobody else on the host may read it unless somebody says so.
        return File(file.path, content, mode if file.permissions else 0o600, secret=True, owner=file.owner or "")
    text = file.content or ""
    if file.encoding == "base64":
        return File(file.path, base64.b64decode("".join(text.split())), mode, owner=file.owner or "")
    return File(file.path, text, mode, owner=file.owner or "")


def user_steps(spec: BootstrapSpec) -> tuple[Step, ...]:
    """Each gives a user what it lacks."""
    return tuple(Step(f"make the user {user.name}", _account(user)) for user in spec.users or ())


def _account(user: User) -> Account:
    groups, keys = tuple(user.groups or ()), tuple(user.ssh_authorized_keys or ())
    return Account(user.name, user.shell or worker_users.SHELL, groups, user.sudo or "", keys)


def kernel_files(spec: BootstrapSpec) -> tuple[Step, ...]:
    """Settings that the kernel is to have at each boot, and the modules that it has from now on."""
    modules = (*documents.MODULES, *(name for name in spec.kernel_modules or () if name not in documents.MODULES))
    return (
        Step("configure the kernel", Files(documents.host_files(modules, spec.sysctls or {}))),
        Step("load kernel modules", Modules(modules)),
    )


def proxy_steps(settings: Settings, server_host: str) -> tuple[Step, ...]:
    """() without a proxy."""
    proxy = settings.spec.proxy
    if proxy is None or not (proxy.http or proxy.https):
        return ()
    lines = [
        f'Environment="{name}={value.replace("%", "%%")}"\n'
        for name, value in _proxy_variables(proxy, settings, server_host)
    ]
    text = "[Service]\n" + "".join(lines)
    return tuple(
        Step(f"set the proxies of {unit.removesuffix('.service')}", Configure(File(path, text), unit))
        for unit, path in PROXY_FILES.items()
    )


def _proxy_variables(proxy: Proxy, settings: Settings, server_host: str) -> list[tuple[str, str]]:
    without = dict.fromkeys([*settings.no_proxy, server_host, *(proxy.no_proxy or ())])
    found = [("HTTP_PROXY", proxy.http or ""), ("HTTPS_PROXY", proxy.https or ""), ("NO_PROXY", ",".join(without))]
    return [(name, value) for name, value in found if value]

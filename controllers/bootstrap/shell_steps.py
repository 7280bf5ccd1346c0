"""Steps that prepare a host and install on it → lines of shell. Every value is quoted, or goes through base64."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterable

from controllers.bootstrap import shell_functions
from controllers.bootstrap.steps import (
    Account,
    Action,
    Architecture,
    Archive,
    Configure,
    Download,
    File,
    NoSwap,
    Packages,
    Permissive,
    Repository,
    RuntimeConfig,
    Script,
    Step,
    TimeServers,
)


def functions(steps: Iterable[Step]) -> str:
    """What the script has to define for these steps, "" where they need nothing."""
    listed = tuple(steps)
    wanted = {name for step in listed for name in _FUNCTIONS.get(type(step.action), ())}
    return shell_functions.texts(wanted | ({"script", "give_up"} if any(step.rescue for step in listed) else set()))


def rescued(step: Step, does: str) -> list[str]:
    """Lines of a step that can be undone: ``does`` names the function that has its own lines."""
    text = step.rescue if step.rescue.startswith("#!") else f"#!/bin/sh\n{step.rescue}"
    return [
        does,
        "failed_with=$?",
        '[ "$failed_with" -ne 0 ] || return 0',
        *([f'[ "$attempt" -ge {step.rescue_after} ] || return "$failed_with"'] if step.rescue_after > 1 else []),
        f'if {_echo(text)} | script {_RESCUE_TIME}; then give_up "$failed_with"; fi',
        'return "$failed_with"',
    ]


def environment(variables: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name}={shlex.quote(value)}\nexport {name}\n" for name, value in variables)


def once(step: Step, lines: list[str]) -> list[str]:
    """``lines`` of a command of the user, which are passed over once they have succeeded."""
    mark = f'"$state/done/"{shlex.quote(step.once)}'
    inner = [f"(cd / && umask 022 && {line}) || return" for line in lines]
    return [f"[ ! -e {mark} ] || return 0", *inner, f'mkdir -p "$state/done" && : > {mark}']


_RESCUE_TIME = 120
"""Seconds."""
_FUNCTIONS: dict[type[Action], tuple[str, ...]] = {
    Script: ("script",),
    Configure: ("configure",),
    RuntimeConfig: ("configure",),
    Repository: ("repository",),
    Packages: ("packages",),
    Architecture: ("architecture",),
    Download: ("download",),
    Archive: ("archive",),
    Account: ("account",),
    NoSwap: ("noswap",),
    Permissive: ("permissive",),
    TimeServers: ("time_servers",),
}


def lines(action: Action, timeout: int) -> list[str]:
    match action:
        case Script(content):
            text = content if content.startswith("#!") else f"#!/bin/sh\n{content}"
            return [f"{_echo(text)} | script {timeout}"]
        case Configure(file, unit):
            return [_configure(file, unit)]
        case RuntimeConfig(path, legacy, current, unit):
            return [
                "if versioned 1 'containerd --version'; then",
                f"  {_configure(File(path, legacy), unit)}",
                "else",
                f"  {_configure(File(path, current), unit)}",
                "fi",
            ]
        case Repository(name, url, suite, components, key, packages):
            call = _call("repository", name, url, suite, " ".join(components), " ".join(packages))
            return [f"{_echo(key.strip() + chr(10))} | {call}"]
        case Packages(packages, hold):
            words = [word for pair in packages for word in pair]
            return [_call("packages", "hold" if hold else "", *words)]
        case Architecture(name):
            return [_call("architecture", name)]
        case Download(path, url, sha256, mode):
            return [_call("download", url, sha256, path, f"{mode:o}")]
        case Archive(folder, url, sha256):
            return [_call("archive", url, sha256, folder)]
        case Account(name, shell, groups, sudo, keys):
            text = "".join(f"{key}\n" for key in keys)
            return [f"{_echo(text)} | {_call('account', name, shell, ','.join(groups), sudo)}"]
        case NoSwap():
            return ["noswap"]
        case Permissive():
            return ["permissive"]
        case TimeServers(servers):
            return [_call("time_servers", *servers)]
    raise AssertionError(f"no lines for {action!r}")


def _configure(file: File, unit: str) -> str:
    return f"{_echo(file.content)} | {_call('configure', f'{file.mode:o}', file.path, file.owner, unit)}"


def _echo(content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    return f"echo {base64.b64encode(data).decode()}"


def _call(function: str, *words: str) -> str:
    return " ".join([function, *(shlex.quote(word) for word in words)])

"""Random command lines over all commands and options, by seed: what people mistype, and what is given on purpose."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from nodewright.cli.main import COMMANDS, build_app

NAMES = ("web", "md/web", "machine/web-0", "ma", "md", "pod", "node", "provider", "openstack.ports", "x/y/z", "cluster")
NUMBERS = ("0", "1", "-1", "3.5", "1e999", "NaN", "99999999999999999999", "٣")
TIMES = ("10s", "-5m", "0s", "1h1h", "99999999h", "soon")
FORMS = ("json", "yaml", "text", "JSON", "debug", "auto", "true", "false")
PIECES = ("1:5:ns/web", "a=b", ":", "://", "https://[::1", "10.0.0.0/8", "clusterapi:a=b", "*", "simulated", "0:1")
HOSTILE = (
    "",
    " ",
    "-",
    "--",
    "---",
    "=",
    "--=",
    "../../etc",
    "%s%n{0}",
    "\x1b[31mred\x1b]0;t\x07",
    "\u202egnp",
    "\udcff\udcfe",  # bytes that are no UTF-8, as Python hands them on
    "é" * 300,
    "a" * 70_000,
    "\n\r\t",
    "[bold]no[/nothing]",
    "'; rm -rf /",
)
READERS = (("validate",), ("convert",), ("plan",))
"""Commands whose words are files."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A command, and what it takes. ``options``: each spelling to whether it takes a value."""

    path: tuple[str, ...]
    options: dict[str, bool] = field(hash=False)
    arguments: int


@cache
def leaves() -> list[Leaf]:
    return list(_leaves(typer.main.get_command(build_app(list(COMMANDS))), ()))


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[Leaf]:
    below = getattr(command, "commands", {})
    for name, each in below.items():
        yield from _leaves(each, (*path, name))
    if not below or command.params:
        options: dict[str, bool] = {"--help": False}
        for param in command.params:
            if param.param_type_name == "option":
                takes = not getattr(param, "is_flag", False)
                options |= dict.fromkeys((*param.opts, *param.secondary_opts), takes)
        yield Leaf(path, options, sum(1 for param in command.params if param.param_type_name == "argument"))


class CommandLines:
    """``files``: paths that may stand where a file is asked for; the first is a kubeconfig that can be read."""

    def __init__(self, seed: int, files: list[Path]) -> None:
        self._random = random.Random(seed)
        self._files = tuple(map(str, files))
        self._leaves = leaves()

    def next(self) -> list[str]:
        """One in two has the words that the command takes, so that the command itself begins its work."""
        toss, leaf = self._random, self._random.choice(self._leaves)
        tidy = toss.random() < 0.5
        words = [self._value(leaf.path, tidy) for _ in range(leaf.arguments) if tidy or toss.random() < 0.9]
        for _ in range(toss.choice((0, 1, 1, 2, 3, 6))):
            words += self._option(leaf, tidy)
        if tidy and "--kubeconfig" in leaf.options and toss.random() < 0.15:
            words += ["--kubeconfig", self._files[0]]
        if not tidy and toss.random() < 0.3:
            toss.shuffle(words)
        path = list(leaf.path)
        if path and not tidy and toss.random() < 0.1:
            path[toss.randrange(len(path))] = self._value()
        return [*path, *words]

    def _option(self, leaf: Leaf, tidy: bool) -> list[str]:
        toss = self._random
        name = toss.choice([name for name in leaf.options if name != "--help" or not tidy] or ["--help"])
        if tidy:
            return [name, self._fitting(name)] if leaf.options[name] else [name]
        if toss.random() < 0.1:
            name = toss.choice((name[:-1], name + "x", name.upper(), "--no-such"))
        if not leaf.options.get(name, True):
            return [name if toss.random() < 0.8 else f"{name}={self._value()}"]
        if toss.random() < 0.05:
            return [name]
        return [name, self._value()] if toss.random() < 0.5 else [f"{name}={self._value()}"]

    def _fitting(self, name: str) -> str:
        """A value of the right sort for the commonest options, for others any."""
        pools = {
            "--kubeconfig": self._files,
            "--output": ("json", "yaml", "text"),
            "-o": ("json", "yaml", "text"),
            "--namespace": ("default", "no-such"),
            "-n": ("default", "no-such"),
            "--context": ("web", "other"),
            "--timeout": ("1s", "90s"),
            "--tail": ("1", "10"),
            "--revision": ("0", "2"),
        }
        return self._random.choice(pools[name]) if name in pools else self._value()

    def _value(self, path: tuple[str, ...] = (), tidy: bool = False) -> str:
        if tidy:
            return self._random.choice(self._files if path[:1] in READERS else NAMES)
        pool = self._random.choice((NAMES, NUMBERS, TIMES, FORMS, PIECES, HOSTILE, self._files))
        return self._random.choice(pool)

"""Commands that switch machines off and on, as the administrator of the controllers lists them in a file. Pure but for
``use``.

They run where the controllers run, so nobody else may say what runs: an object of a namespace names one of them, and
gives an address, a user's name and a password. Each of these is one word in the place that the file has for it; no
shell reads it, and it can't begin with a dash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.yamltext import TextError, load

PLACES = ("address", "user", "password-file")
"""What may stand between braces in an argument."""
LONGEST, DEFAULT_SECONDS = 45, 20
"""Seconds that a command may take."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST = 64
_FIELDS = frozenset({"command", "namespaces", "timeoutSeconds"})


@dataclass(frozen=True, slots=True)
class PowerCommand:
    """``argv`` with places as ``{address}``. ``namespaces``: whose objects may name it; ``*`` stands for all."""

    name: str
    argv: tuple[str, ...]
    namespaces: frozenset[str]
    seconds: int = DEFAULT_SECONDS

    def has(self, place: str) -> bool:
        return any(f"{{{place}}}" in word for word in self.argv)

    def may_be_named_in(self, namespace: str) -> bool:
        return "*" in self.namespaces or namespace in self.namespaces

    def filled(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """The words to run; what a value holds is not looked at again."""
        return tuple(_BRACES.sub(lambda found: values[found[1]], word) for word in self.argv)


def read(text: str) -> Mapping[str, PowerCommand]:
    """By name. Raises ValueError naming the command and its field."""
    try:
        found = load(text)
    except TextError as error:
        raise ValueError(str(error)) from error
    if not isinstance(found, Mapping) or len(found) > _MOST:
        raise ValueError(f"it has to be a map of at most {_MOST} commands by their names")
    return {str(name): _command(str(name), entry) for name, entry in found.items()}


def _command(name: str, entry: Any) -> PowerCommand:
    if not _NAME.match(name):
        raise ValueError(f"{name[:63]!r} is no name: lower-case letters, digits and dashes, at most 63")
    if not isinstance(entry, Mapping) or not entry.keys() <= _FIELDS:
        raise ValueError(f"{name}: it has to be a map of {', '.join(sorted(_FIELDS))}")
    argv = _words(entry.get("command"), f"{name}.command")
    unknown = [place for word in argv for place in _BRACES.findall(word) if place not in PLACES]
    if unknown:
        raise ValueError(f"{name}.command: {{{unknown[0]}}} is none of {', '.join(f'{{{place}}}' for place in PLACES)}")
    if not argv[0].startswith("/") or _BRACES.search(argv[0]):
        raise ValueError(f"{name}.command: the program has to be an absolute path")
    namespaces = frozenset(_words(entry.get("namespaces"), f"{name}.namespaces"))
    seconds = entry.get("timeoutSeconds", DEFAULT_SECONDS)
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 1 <= seconds <= LONGEST:
        raise ValueError(f"{name}.timeoutSeconds: has to be a whole number from 1 to {LONGEST}")
    return PowerCommand(name, argv, namespaces, seconds)


def _words(found: Any, field: str) -> tuple[str, ...]:
    words = found if isinstance(found, list) else []
    if not words or not all(isinstance(word, str) and word and "\0" not in word for word in words):
        raise ValueError(f"{field}: has to be a list of words, one at least")
    return tuple(words)


_chosen: dict[str, PowerCommand] = {}


def use(commands: Mapping[str, PowerCommand]) -> None:
    """Set those of this process: what the administrator chose."""
    _chosen.clear()
    _chosen.update(commands)


def current() -> Mapping[str, PowerCommand]:
    return _chosen

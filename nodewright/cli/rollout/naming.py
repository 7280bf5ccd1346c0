"""Which MachineDeployment is meant."""

from __future__ import annotations

from collections.abc import Sequence

from nodewright.cli.exits import USAGE, CliError

KIND = "machinedeployment"
_WORDS = frozenset(("md", KIND, f"{KIND}s", f"{KIND}.cluster.k8s.io", f"{KIND}s.cluster.k8s.io"))


def name_of(words: Sequence[str]) -> str:
    """The name in ``md/workers``, ``md workers`` or ``workers``. Raises CliError (usage)."""
    if not words:
        raise CliError("no object is named", "Name it like md/workers", USAGE)
    parts = words[0].split("/", 1) if len(words) == 1 else list(words)
    if len(parts) == 1 and parts[0]:
        return parts[0]
    if len(parts) != 2 or not parts[1] or "/" in parts[1]:
        raise CliError(f"{' '.join(words)!r} is not one object", "Name it like md/workers", USAGE)
    if parts[0].lower() not in _WORDS:
        raise CliError(
            f"{parts[0]} has no rollouts here", "Only machinedeployment (md) has; name it like md/workers", USAGE
        )
    return parts[1]


def must_be_kind(words: Sequence[str]) -> None:
    """Beside ``-l`` no name may stand, the kind may. Raises CliError (usage)."""
    if words and (len(words) > 1 or words[0].lower() not in _WORDS):
        raise CliError(f"-l chooses the objects, and {' '.join(words)!r} names one", "Leave one of them out", USAGE)

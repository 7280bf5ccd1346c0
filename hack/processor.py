"""Whether this machine's processors were its own, as Linux counts it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_WORK = (0, 1, 2, 5, 6)
_STEAL = 7


@dataclass(frozen=True, slots=True)
class Ticks:
    """Since the machine started, of all processors: ``work`` done, and ``stolen``, when there was work to do and the
    host let another machine run (proc(5), ``/proc/stat``).
    """

    work: int = 0
    stolen: int = 0

    def stolen_since(self, before: Ticks) -> float:
        """The share of the time that was wanted. Above some percent, tails and seconds are the host's."""
        work, stolen = self.work - before.work, self.stolen - before.stolen
        return stolen / (work + stolen) if stolen > 0 else 0.0


def ticks(stat: Path = Path("/proc/stat")) -> Ticks:
    """Zeros where there is no such file."""
    try:
        counts = list(map(int, stat.read_text().partition("\n")[0].split()[1:]))
    except OSError:
        return Ticks()
    return Ticks(sum(counts[kind] for kind in _WORK), counts[_STEAL])

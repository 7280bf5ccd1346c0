"""What ``validate`` reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from nodewright.cli.manifests.positions import Position


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong. ``kind``, ``name`` and ``path`` are "" where nothing so precise is known."""

    file: str
    position: Position
    message: str
    kind: str = ""
    name: str = ""
    path: str = ""

    def line(self) -> str:
        """``file:line: kind name: field.path: message``, the form editors and CI tools can jump to."""
        subject = " ".join(part for part in (self.kind, self.name) if part)
        parts = [f"{self.file}:{self.position.line}", subject, self.path, self.message]
        return "\\n".join(": ".join(part for part in parts if part).splitlines())

    def data(self) -> dict[str, Any]:
        fields = asdict(self)
        position = fields.pop("position")
        return {"file": fields.pop("file"), **position, **fields}


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sorted by place, without repeats: two checks may find the same fault."""
    unique = {(f.file, f.position.line, f.path, f.message): f for f in findings}
    return sorted(unique.values(), key=lambda f: (f.file, f.position.line, f.position.column, f.path, f.message))

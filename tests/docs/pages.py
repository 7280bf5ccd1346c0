"""The documentation as data: its pages, the links in them, and the fenced blocks with what stands behind the fence."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^```.*?^```\s*$|^ {4}[^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: ``info`` is the line behind the fence, ``line`` where its text begins."""

    page: Path
    line: int
    info: str
    text: str

    @property
    def title(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def language(self) -> str:
        return self.info.split()[0] if self.info.split() else ""

    @property
    def file(self) -> str:
        """The file that a block marked ``file=…`` is the content of, "" without."""
        return next((word.removeprefix("file=") for word in self.info.split() if word.startswith("file=")), "")


@cache
def tracked() -> tuple[Path, ...]:
    """Every file of the project: what git has, and what it would add; nothing that is ignored or deleted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=180,
    )
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def markdown() -> tuple[Path, ...]:
    return tuple(path for path in tracked() if path.suffix == ".md")


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("text")) + 1
        yield Block(page, line, found["info"].strip(), found["text"])


def links(page: Path) -> list[str]:
    """Relative links, in the order of the page; links in code and those to other hosts left out."""
    prose = _CODE.sub("", page.read_text())
    return [link for link in _LINK.findall(prose) if "://" not in link and not link.startswith("mailto:")]


def anchors(page: Path) -> set[str]:
    """The fragments that a page's headings can be reached by (lower case, words joined by hyphens)."""
    prose = _FENCE.sub("", page.read_text())
    return {anchor(heading) for heading in _HEADING.findall(prose)}


def anchor(heading: str) -> str:
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")

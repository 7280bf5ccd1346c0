"""Draws the pictures of the pages from text: ``docs/pictures/NAME.txt`` becomes ``NAME.svg``.

A text has a title, boxes at places of a grid (column, row), and arrows between them:

    The title that screen readers say
    box a 0 0 Machine | what stands below its name
    arrow a b | what stands beside it

``python -m hack.pictures --write`` draws them, ``--check`` fails when what is committed differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from hack.reference import ROOT

FOLDER = ROOT / "docs" / "pictures"
WIDTH, HEIGHT, ACROSS, DOWN, EDGE = 200, 56, 320, 110, 16
"""Of a box, and from one box to the next, in pixels."""
_STYLE = (
    "text{font-family:system-ui,sans-serif;font-size:14px;fill:#1a1c2e;text-anchor:middle}"
    ".small{font-size:11px;fill:#4a4e69}"
    "rect{fill:#eef1ff;stroke:#3949ab;stroke-width:1.5}"
    "path{stroke:#3949ab;stroke-width:1.5;fill:none;marker-end:url(#head)}"
)
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 8 4 0 8z" style="fill:#3949ab;stroke:none"/></marker></defs>'
)


@dataclass(frozen=True, slots=True)
class Box:
    """``x``, ``y``: its middle, in pixels."""

    x: int
    y: int
    name: str
    below: str


def drawn(text: str) -> str:
    """The SVG of one text. Raises ValueError that names the line that can't be read."""
    title, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    boxes: dict[str, Box] = {}
    arrows: list[str] = []
    for line in lines:
        try:
            head, _, words = line.partition("|")
            what, *rest = head.split()
            if what == "box":
                key, column, row, *name = rest
                x, y = int(column) * ACROSS + WIDTH // 2 + EDGE, int(row) * DOWN + HEIGHT // 2 + EDGE
                boxes[key] = Box(x, y, " ".join(name), words.strip())
            elif what == "arrow":
                start, end = rest
                arrows += _arrow(boxes[start], boxes[end], words.strip())
            else:
                raise ValueError(what)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{line!r}: neither `box KEY COLUMN ROW NAME` nor `arrow FROM TO`: {error}") from None
    width = max(box.x for box in boxes.values()) + WIDTH // 2 + EDGE
    height = max(box.y for box in boxes.values()) + HEIGHT // 2 + EDGE
    body = [*arrows, *(part for box in boxes.values() for part in _box(box))]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(title)}">'
    return "\n".join([start, f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", _HEAD, *body, "</svg>", ""])


def _box(box: Box) -> Iterator[str]:
    place = f'x="{box.x - WIDTH // 2}" y="{box.y - HEIGHT // 2}" width="{WIDTH}" height="{HEIGHT}" rx="8"'
    yield f"<rect {place}/>"
    yield f'<text x="{box.x}" y="{box.y + (-3 if box.below else 5)}">{escape(box.name)}</text>'
    if box.below:
        yield f'<text class="small" x="{box.x}" y="{box.y + 15}">{escape(box.below)}</text>'


def _arrow(start: Box, end: Box, words: str) -> Iterator[str]:
    """From side to side in one row or across rows, from edge to edge in one column."""
    if start.x == end.x:
        way = 1 if end.y > start.y else -1
        points = (start.x, start.y + way * HEIGHT // 2, end.x, end.y - way * HEIGHT // 2)
    else:
        way = 1 if end.x > start.x else -1
        points = (start.x + way * WIDTH // 2, start.y, end.x - way * WIDTH // 2, end.y)
    yield '<path d="M{} {}L{} {}"/>'.format(*points)
    x, y = (points[0] + points[2]) // 2, (points[1] + points[3]) // 2
    if words:
        beside = start.x == end.x
        place = f'x="{x + 8}" y="{y + 4}" style="text-anchor:start"' if beside else f'x="{x}" y="{y - 6}"'
        yield f'<text class="small" {place}>{escape(words)}</text>'


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw or check docs/pictures/*.svg.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    write, stale = parser.parse_args().write, []
    for source in sorted(FOLDER.glob("*.txt")):
        target, picture = source.with_suffix(".svg"), drawn(source.read_text(encoding="utf-8"))
        if write:
            target.write_text(picture, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != picture:
            stale.append(str(target.relative_to(ROOT)))
    if stale:
        print(f"not current, run `make generate`: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

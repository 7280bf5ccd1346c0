"""The pages as the site has them: ``docs/`` at the top, pages of the repository's root below ``project/``.

The pages are written for readers of the repository (GitHub's Markdown). The site's Markdown is stricter about empty
lines before lists and tables, and knows no words behind the language of a fence; both are mended here, in a copy.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PROJECT = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SCOPE.md", "SECURITY.md", "CHANGELOG.md")
"""Pages of the repository's root that are part of the site."""

_FENCED = re.compile(r"^(?P<fence> *```)(?P<info>[^\n]*)\n(?P<text>.*?)^ *```\s*?$", re.MULTILINE | re.DOTALL)
_CODE = r"(?P<code>`+)(?:.(?!(?P=code)))*.?(?P=code)"
_LINK = re.compile(_CODE + r"|(?P<image>!?)\[(?P<label>(?:`[^`]*`|[^\]`])*)\]\((?P<link>[^)\s]+)\)", re.DOTALL)
_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")


def stage(root: Path, target: Path, source: str = "") -> dict[str, Path]:
    """Write the pages of ``root`` to ``target`` and return which file each page is of, by its path in the site.

    ``source``: the address at which files of the repository are shown, "" for none: links to tests and manifests are
    then their words alone.
    """
    shutil.rmtree(target, ignore_errors=True)
    pages = dict(_pages(root))
    places = {path.relative_to(root).as_posix(): site for site, path in pages.items()}
    for site, path in pages.items():
        file = target / site
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            page = Page(path.relative_to(root).as_posix(), site, Repository(root, places, source))
            file.write_text(page.written(path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copyfile(path, file)
    return pages


def _pages(root: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted((root / "docs").rglob("*")):
        if path.suffix in {".md", ".png", ".svg"}:
            yield path.relative_to(root / "docs").as_posix(), path
    for name in PROJECT:
        yield f"project/{name}", root / name


@dataclass(frozen=True, slots=True)
class Repository:
    """``places``: where in the site each file is that is part of it. ``source``: see ``stage``."""

    root: Path
    places: Mapping[str, str]
    source: str = ""


class Page:
    """``path``: of the file in the repository; ``site``: its place in the site."""

    def __init__(self, path: str, site: str, repository: Repository) -> None:
        self._folder, self._site = PurePosixPath(path).parent.as_posix(), site
        self._repository = repository

    def written(self, text: str) -> str:
        parts, end = [], 0
        for fenced in _FENCED.finditer(text):
            parts.append(self._prose(text[end : fenced.start()]))
            language = (fenced["info"].split() or [""])[0]
            parts.append(f"{fenced['fence']}{language}\n{fenced['text']}{fenced['fence']}")
            end = fenced.end()
        return "".join([*parts, self._prose(text[end:])])

    def _prose(self, text: str) -> str:
        spaced = "\n".join(_spaced(text.split("\n")))
        return _LINK.sub(lambda found: found[0] if found["code"] else self._link(found), spaced)

    def _link(self, found: re.Match[str]) -> str:
        """The link from the page's place in the site; a file outside of it is one of ``source``, or no link.

        What does not exist stays as it is written, for mkdocs to name it.
        """
        link, _, fragment = found["link"].partition("#")
        if not link or "://" in link or link.startswith("mailto:"):
            return found[0]
        here = self._repository
        target = posixpath.normpath(posixpath.join(self._folder, link))
        behind = f"#{fragment}" if fragment else ""
        start = f"{found['image']}[{found['label']}]"
        if target in here.places:
            near = posixpath.relpath(here.places[target], posixpath.dirname(self._site) or ".")
            return f"{start}({near}{behind})"
        if not (here.root / target).exists():
            return found[0]
        return f"{start}({here.source.rstrip('/')}/{target}{behind})" if here.source else found["label"]


def _spaced(lines: list[str]) -> Iterator[str]:
    """An empty line before each list and table that follows text; ``\\|`` in a cell's code is ``|`` there."""
    before = ""
    for line in lines:
        starts = (_ITEM.match(line) and not _goes_on(before)) or (line.startswith("|") and not before.startswith("|"))
        if starts and before.strip() and not before.startswith("#"):
            yield ""
        yield _cells(line) if line.startswith("|") else line
        before = line


def _goes_on(before: str) -> bool:
    return bool(_ITEM.match(before)) or before.startswith("  ")


def _cells(row: str) -> str:
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row)

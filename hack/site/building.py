"""Build the site of one version, hold it to its rules, and list it beside the versions that are there."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.release.parts import ROOT, ReleaseError, commit_time
from hack.site import settings, staging

_LOADS = re.compile(
    r"<(?:script|link|img|iframe|source|object)\b[^>]*?(?:src|href|data)=[\"']?(?:https?:)?//[^\"'\s>]+"
)
_STYLES = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^\"')\s]+")


@dataclass(frozen=True, slots=True)
class Site:
    folder: Path
    pages: int


def build(out: Path, version: str, source: str = "", root: Path = ROOT) -> Site:
    """Write ``out/version``, ``out/versions.json`` and ``out/index.html``.

    Raises ReleaseError that names each link or anchor that leads nowhere, each page that is in no menu, and each page
    that loads something from another host.
    """
    with tempfile.TemporaryDirectory(prefix="nodewright-site-") as scratch:
        pages, built = Path(scratch) / "pages", Path(scratch) / "built"
        staged = staging.stage(root, pages, source)
        shutil.copytree(settings.ASSETS, pages / "assets")
        _run_mkdocs(settings.config(pages, built, version))
        foreign = sorted(_foreign(built))
        if foreign:
            raise ReleaseError(f"pages load from other hosts: {'; '.join(foreign[:10])}")
        folder = out / version
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(built, folder)
    _list_versions(out)
    return Site(folder, sum(path.endswith(".md") for path in staged))


def _run_mkdocs(config: dict[str, object]) -> None:
    with _warnings() as said, _time_of_the_commit():
        from mkdocs.commands.build import build as build_pages  # noqa: PLC0415 - a tool of the developers
        from mkdocs.config import load_config  # noqa: PLC0415
        from mkdocs.exceptions import MkDocsException  # noqa: PLC0415

        try:
            build_pages(load_config(config_file=io.BytesIO(b"{}"), **config))
        except MkDocsException as error:
            said.append(str(error))
    if said:
        raise ReleaseError("the site is not right:\n" + "\n".join(said))


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What mkdocs warns of; it is printed nowhere else."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("mkdocs")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


@contextmanager
def _time_of_the_commit() -> Iterator[None]:
    """Times in the pages are the commit's, so that a second build has the same bytes."""
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = str(commit_time())
    try:
        yield
    finally:
        if before is None:
            del os.environ["SOURCE_DATE_EPOCH"]
        else:
            os.environ["SOURCE_DATE_EPOCH"] = before


def _foreign(site: Path) -> Iterator[str]:
    """``page: tag`` of everything that a browser would load from another host; links to click on are none."""
    for path in site.rglob("*"):
        pattern = {".html": _LOADS, ".css": _STYLES}.get(path.suffix)
        if pattern is not None:
            for found in pattern.finditer(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(site)}: {found[0][:120]}"


def _list_versions(out: Path) -> None:
    """As the menu of versions reads it (mike's format), the newest first; the top page goes there."""
    numbers = sorted((each.name for each in out.iterdir() if (each / "index.html").exists()), key=_order, reverse=True)
    rows = [{"version": n, "title": n, "aliases": ["latest"] if n == numbers[0] else []} for n in numbers]
    (out / "versions.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    newest = f"{numbers[0]}/index.html"
    head = f'<meta charset="utf-8"><title>Nodewright</title><meta http-equiv="refresh" content="0; url={newest}">'
    top = f'<!doctype html>{head}<a href="{newest}">Nodewright {numbers[0]}</a>\n'
    (out / "index.html").write_text(top, encoding="utf-8")


def _order(version: str) -> tuple[tuple[int, ...], bool]:
    """0.10.0 comes after 0.9.0, and 1.0.0 after 1.0.0-rc1."""
    release, _, before = version.partition("-")
    return tuple(int(n) for n in re.findall(r"\d+", release)), not before

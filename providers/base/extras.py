"""How is an extra of the program installed here? That depends on how the program itself was."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME = "nodewright"


def install_command(extra: str, prefix: Path | None = None, direct_url: str | None = None) -> str:
    """The command that brings ``extra``, e.g. "ssh", for messages.

    ``direct_url`` is what the installer wrote down of its source (PEP 610), "" if it wrote nothing. The command names a
    checkout or a wheel's file:

    >>> install_command("ssh", Path("/none"), '{"url": "file:///tmp/nodewright-0.1.0-py3-none-any.whl"}')
    "pip install '/tmp/nodewright-0.1.0-py3-none-any.whl[ssh]'"
    """
    found = _source(_recorded() if direct_url is None else direct_url)
    folder = prefix or Path(sys.prefix)
    what = shlex.quote(f"{found.where or NAME}[{extra}]")
    if (folder / "uv-receipt.toml").exists():
        return f"uv tool install --force {what}"
    if (folder / "pipx_metadata.json").exists():
        return f"pipx install --force {what}"
    return f"pip install --editable {what}" if found.editable else f"pip install {what}"


@dataclass(frozen=True, slots=True)
class _Source:
    """``where``: "" for an index."""

    where: str = ""
    editable: bool = False


def _recorded() -> str:
    try:
        return distribution(NAME).read_text("direct_url.json") or ""
    except PackageNotFoundError:
        return ""


def _source(direct_url: str) -> _Source:
    """Where it was installed from; an index if that is not to be seen."""
    try:
        recorded = json.loads(direct_url or "{}")
        url, editable = urlsplit(str(recorded.get("url", ""))), bool(recorded.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return _Source()
    return _Source(unquote(url.path), editable) if url.scheme == "file" else _Source()

"""The CustomResourceDefinitions of this version, as the package carries them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

_HERE = Path(__file__).parent


def crd_folder() -> Path:
    """``crds/`` of a checkout, or its copy inside an installed wheel. Raises FileNotFoundError if there is neither."""
    for folder in (_HERE / "crds", _HERE.parent / "crds"):
        if any(folder.glob("*.yaml")):
            return folder
    raise FileNotFoundError(f"no CRDs in {_HERE / 'crds'} nor {_HERE.parent / 'crds'}: the installation is incomplete")


@cache
def _packed() -> bytes:
    """Parsed once: reading YAML takes a hundred times as long as reading it again from JSON."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    texts = [path.read_text() for path in sorted(crd_folder().glob("*.yaml"))]
    return orjson.dumps([doc for text in texts for doc in yaml.load_all(text, Loader=loader) if doc])


def load_crds() -> list[dict[str, Any]]:
    """Fresh copies, ordered by file name."""
    crds: list[dict[str, Any]] = orjson.loads(_packed())
    return crds

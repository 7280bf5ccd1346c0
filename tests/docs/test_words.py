"""Identifiers use the words of ``docs/glossary.md``: retired words of earlier versions don't come back."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, tracked

PACKAGES = ("api", "controllers", "nodewright", "providers")

RETIRED = {
    "abroad": "workload cluster",
    "belongings": "owned tags",
    "births": "creates",
    "brake": "write throttle",
    "census": "inventory, or collectors",
    "condemn": "select for deletion",
    "condemned": "selected for deletion",
    "cooling": "cooldown",
    "customs": "custom resources",
    "forsaken": "abandoned",
    "foresight": "dryrun",
    "furniture": "layout",
    "hopeless": "unprovisionable, or permanent",
    "luck": "chance",
    "mates": "peers",
    "outlook": "cluster router",
    "purse": "PDB budgets",
    "ripe": "eligible",
    "rival": "other autoscaler, or other holder",
    "room": "reconciler, or headroom",
    "rooms": "reconcilers",
    "seat": "reserve",
    "seating": "reservations",
    "seats": "reservation, or pod counts",
    "seeking": "incremental fit",
    "shapeless": "unknown template",
    "sight": "node source",
    "spared": "unmarked, or kept",
    "stray": "unmatched",
    "strays": "unmatched",
    "surroundings": "drain context, or dependencies",
    "taste": "display options",
    "tenants": "pods by node",
    "unclear": "unresolved",
    "unreached": "unreachable",
    "wish": "desired, or spec",
    "wished": "requested",
    "wishes": "desired",
}
"""A retired word → the word of today."""

ALLOWED: dict[str, frozenset[str]] = {
    "standing": frozenset({"nodewright/apiserver/store/garbage.py", "nodewright/cli/commands/run.py"}),
}
"""Words that are retired but for these files: owners of garbage collection, and a process on standby."""

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _parts(name: str) -> set[str]:
    """``AutoscalerRoom`` → {"autoscaler", "room"}."""
    return {part.lower() for part in _PART.findall(name)}


def _names(path: str, text: str) -> Iterator[tuple[str, str]]:
    """(where, name) of all identifiers, keyword arguments and attributes included, and of the path."""
    yield path, path.removesuffix(".py")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield f"{path}:{token.start[0]}", token.string


def retired_in(path: str, text: str) -> list[str]:
    """``file:line: name (use …)`` of each retired word."""
    return [
        f"{where}: {name} (use: {RETIRED.get(word, 'another word')})"
        for where, name in _names(path, text)
        for word in sorted(_parts(name))
        if word in RETIRED or (word in ALLOWED and path not in ALLOWED[word])
    ]


def modules() -> list[str]:
    paths = (path.relative_to(ROOT) for path in tracked() if path.suffix == ".py")
    return [str(path) for path in paths if path.parts[0] in PACKAGES]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_identifier_has_a_retired_word(package: str) -> None:
    mine = [path for path in modules() if Path(path).parts[0] == package]
    assert mine, f"no module of {package} is found"
    assert [found for path in mine for found in retired_in(path, (ROOT / path).read_text())] == []


def test_an_allowed_word_is_still_there() -> None:
    unused = [
        f"{word}: {path}"
        for word, paths in ALLOWED.items()
        for path in paths
        if not any(word in _parts(name) for _, name in _names(path, (ROOT / path).read_text()))
    ]
    assert unused == []


def test_retired_words_are_found_however_they_are_written() -> None:
    text = "class MachineRoom:\n    _wish_of = 1\n\nHOPELESS = f(strays=2).brake\n"
    assert [found.split(" ")[1] for found in retired_in("api/census.py", text)] == [
        "api/census",
        "MachineRoom",
        "_wish_of",
        "HOPELESS",
        "strays",
        "brake",
    ]


def test_strings_and_other_words_are_no_matter() -> None:
    assert retired_in("api/x.py", '"""Room for a wish."""\nheadroom = controlPlane = insight = bathroom = 1\n') == []


def test_the_glossary_has_no_retired_word_as_a_term() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)
    assert len(terms) >= 20, "the glossary has hardly any term; is its table still found?"
    assert terms == sorted(terms, key=str.lower)
    assert [term for term in terms if _parts(term) & RETIRED.keys()] == []

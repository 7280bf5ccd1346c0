"""The documentation is right: links lead somewhere, manifests are valid, nothing unfinished is in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodewright.cli.commands.validate import check_text
from nodewright.cli.manifests.checks import Checker
from tests.docs.pages import ROOT, Block, anchor, anchors, blocks, links, markdown, tracked

INDEX = ROOT / "docs" / "README.md"

# In pieces, so that this file does not name what it forbids.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("proxy", "golang", "org"),
        ("registry", "npmjs", "org"),
        ("crates", "io"),
        ("deb", "debian", "org"),
    )
)
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME)\b")


def yaml_blocks() -> list[Block]:
    """YAML of the documentation that stands for itself; a provider's own kind is tried with that provider."""
    pages = [page for page in markdown() if ROOT / "docs" in page.parents or page.parent == ROOT]
    return [b for page in pages for b in blocks(page) if b.language == "yaml" and "provider=" not in b.info]


@pytest.mark.parametrize("page", markdown(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            broken.append(f"{link}: no such file")
        elif fragment and target.suffix == ".md" and fragment not in anchors(target):
            broken.append(f"{link}: no such heading")
    assert broken == []


def test_the_index_names_pages_and_they_exist() -> None:
    named = [link for link in links(INDEX) if link.endswith(".md")]
    assert len(named) >= 10, "the index names hardly any page; is its table still found?"
    assert [page for page in named if not (INDEX.parent / page).is_file()] == []


def test_the_index_names_every_page_once() -> None:
    """Folders with an index of their own (the API, the decisions) stand there by that."""
    folders = [folder for folder in (ROOT / "docs").iterdir() if folder.is_dir()]
    listed_alone = [page for folder in folders if not (folder / "README.md").exists() for page in folder.glob("*.md")]
    pages = {*(ROOT / "docs").glob("*.md"), *listed_alone} - {INDEX}
    named = [(INDEX.parent / link.partition("#")[0]).resolve() for link in links(INDEX)]
    assert {page: named.count(page) for page in pages if named.count(page) != 1} == {}


def test_a_link_in_code_is_no_link(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](a.md) `[b](b.md)`\n\n```\n[c](c.md)\n```\n\n    [d](d.md)\n")
    assert links(page) == ["a.md"]


def test_a_heading_is_reached_by_its_words() -> None:
    assert anchor("Roll `md` back, [again](x.md)!") == "roll-md-back-again"


@pytest.mark.parametrize("block", yaml_blocks(), ids=lambda block: block.title)
def test_every_manifest_of_the_documentation_is_valid(block: Block) -> None:
    assert [finding.line() for finding in check_text(Checker(), block.title, block.text)] == []


def test_a_wrong_manifest_would_be_found() -> None:
    wrong = "apiVersion: cluster.k8s.io/v1alpha1\nkind: Machine\nmetadata: {name: a}\nspec: {versoins: {}}\n"
    assert list(check_text(Checker(), "wrong.yaml", wrong)) != []


def test_the_documentation_has_manifests() -> None:
    assert len(yaml_blocks()) >= 8


def test_no_file_names_a_package_registry() -> None:
    hosts = re.compile("|".join(rf"\b{re.escape(host)}\b" for host in REGISTRIES))
    assert _naming(hosts) == []


def test_nothing_unfinished_is_left() -> None:
    assert _naming(UNFINISHED) == []


def _naming(pattern: re.Pattern[str]) -> list[str]:
    """``file:line`` of every text in the repository that has the pattern."""
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        if pattern.search(text):
            lines = [n for n, line in enumerate(text.splitlines(), 1) if pattern.search(line)]
            found.append(f"{path.relative_to(ROOT)}:{lines[0]}")
    return found

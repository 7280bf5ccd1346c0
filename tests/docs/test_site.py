"""The site of the documentation: its pages are those of the repository, and what leads nowhere fails the build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from hack import browser as chromium
from hack import lookup, pictures
from hack.reference import PAGES
from hack.release.parts import ReleaseError
from hack.site import building, settings, staging
from tests.docs.pages import ROOT, anchor, anchors
from tests.realplane import lacking


def page(text: str, source: str = "") -> str:
    places = {"docs/tasks/a.md": "tasks/a.md", "docs/b.md": "b.md", "SCOPE.md": "project/SCOPE.md"}
    return staging.Page("docs/tasks/a.md", "tasks/a.md", staging.Repository(ROOT, places, source)).written(text)


@pytest.mark.parametrize(
    ("written", "staged"),
    [
        ("[b](../b.md#c)", "[b](../b.md#c)"),
        ("[scope](../../SCOPE.md)", "[scope](../project/SCOPE.md)"),
        ("[two\nlines](../../SCOPE.md)", "[two\nlines](../project/SCOPE.md)"),
        ("[`files[].x`](../../SCOPE.md)", "[`files[].x`](../project/SCOPE.md)"),
        ("`[x](../../SCOPE.md)`", "`[x](../../SCOPE.md)`"),
        ("[a test](../../tests/conftest.py)", "a test"),
        ("[here](#c) [far](https://e.example/)", "[here](#c) [far](https://e.example/)"),
    ],
)
def test_a_link_leads_to_the_same_page_in_the_site(written: str, staged: str) -> None:
    assert page(written) == staged


def test_with_an_address_of_the_repository_a_link_to_a_test_leads_there() -> None:
    assert (
        page("[a test](../../tests/conftest.py)", "https://e.example/x/")
        == "[a test](https://e.example/x/tests/conftest.py)"
    )


@pytest.mark.parametrize(
    ("written", "staged"),
    [
        ("text:\n- a\n- b\n", "text:\n\n- a\n- b\n"),
        ("text\n| a |\n|---|\n| `x\\|y` |\n", "text\n\n| a |\n|---|\n| `x|y` |\n"),
        ("```yaml file=x.yaml\n- a\n```\n", "```yaml\n- a\n```\n"),
        ("- a\n  goes on\n- b\n", "- a\n  goes on\n- b\n"),
    ],
)
def test_what_the_sites_markdown_reads_otherwise_is_mended(written: str, staged: str) -> None:
    assert page(written) == staged


@pytest.mark.parametrize("heading", ["What is `left`?", "3.3 when a thousand, at once", "nodewright_leader", "A-b c"])
def test_anchors_of_the_site_are_those_of_the_repository(heading: str) -> None:
    assert settings.slug(heading, "-") == anchor(heading)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two pages."""
    (tmp_path / "docs").mkdir()
    for name in staging.PROJECT:
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / "docs/README.md").write_text("# Home\n\n[two](two.md#there)\n")
    (tmp_path / "docs/two.md").write_text("# Two\n\n## There\n")
    monkeypatch.setattr(settings, "SECTIONS", {"All": ("*.md", "project/*.md")})
    return tmp_path


def test_versions_stand_side_by_side_and_the_newest_is_first(small: Path) -> None:
    out = small / "out"
    for version in ("0.10.0", "0.9.0"):
        made = building.build(out, version, root=small)
    assert (made.folder / "two.html").is_file()
    listed = json.loads((out / "versions.json").read_text())
    assert [each["version"] for each in listed] == ["0.10.0", "0.9.0"]
    assert "0.10.0/index.html" in (out / "index.html").read_text()


def test_a_version_comes_after_its_candidates() -> None:
    assert sorted(["1.0.0", "0.10.0", "1.0.0-rc1", "0.9.0"], key=building._order) == [
        "0.9.0",
        "0.10.0",
        "1.0.0-rc1",
        "1.0.0",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[x](none.md)", "none.md"),
        ("[x](two.md#nowhere)", "nowhere"),
        ('<script src="https://e.example/x.js"></script>', "load from other hosts"),
        ('<img src="//e.example/x.png">', "load from other hosts"),
    ],
)
def test_what_leads_nowhere_or_loads_from_elsewhere_fails_the_build(small: Path, text: str, says: str) -> None:
    (small / "docs/README.md").write_text(f"# Home\n\n{text}\n")
    with pytest.raises(ReleaseError, match=says):
        building.build(small / "out", "1.0.0", root=small)
    assert not (small / "out").exists(), "nothing is put in place of a site that is right"


def test_a_page_in_no_menu_fails_the_build(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "SECTIONS", {"All": ("README.md", "project/*.md")})
    with pytest.raises(ReleaseError, match=r"two\.md"):
        building.build(small / "out", "1.0.0", root=small)


def test_the_menu_names_pages_that_exist() -> None:
    named = [page for pages in settings.SECTIONS.values() for page in pages if "*" not in page]
    assert [page for page in named if not _file(page).is_file()] == []


def _file(page: str) -> Path:
    return ROOT / page.removeprefix("project/") if page.startswith("project/") else ROOT / "docs" / page


def test_each_name_is_looked_up_by_one_anchor() -> None:
    names = [name for name, _ in lookup._all(ROOT)]
    found = anchors(PAGES / "lookup.md")
    assert {name for name in names if name.lower() not in found} == set()
    assert {"QuotaExceeded", "Ready", "nodewright_leader", "cluster_autoscaler_nodes_count"} <= set(names)


def test_a_picture_is_drawn_from_its_text_alone() -> None:
    text = "Two boxes\nbox a 0 0 One | <first>\nbox b 1 0 Two\narrow a b | then\n"
    picture = pictures.drawn(text)
    assert picture == pictures.drawn(text)
    assert "&lt;first&gt;" in picture
    assert "<title>Two boxes</title>" in picture


@pytest.mark.parametrize("line", ["box a x 0 One", "arrow a b", "line a b"])
def test_a_line_of_a_picture_that_cant_be_read_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=line):
        pictures.drawn(f"Title\n{line}\n")


@pytest.mark.e2e
def test_the_whole_site_is_built_and_searched_from_a_folder_without_a_server(tmp_path: Path) -> None:
    made = building.build(tmp_path / "site", "0.1.0")
    found = chromium.find()
    if found is None:
        lacking(f"Chromium not found: {chromium.REMEDY}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        tab = browser.new_page()
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((made.folder / "tasks/scale.html").as_uri())
        tab.fill(".md-search__input", "QuotaExceeded")
        expect(tab.locator(".md-search-result__item a").first).to_be_attached(timeout=300_000)
        expect(tab.locator(".md-search-result__list")).to_contain_text("A quota is used up", timeout=300_000)
        assert [url for url in asked if not url.startswith("file:")] == []
        browser.close()

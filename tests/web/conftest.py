"""A real Chromium, and `nodewright up` with a fleet in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from hack import browser as chromium
from hack.program import Up
from nodewright.cli.examples import write_example
from tests.realplane import lacking

PICTURES = Path(__file__).resolve().parent.parent.parent / "build" / "web"
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
WIDTHS = {"desktop": DESKTOP, "phone": PHONE}


PATIENCE = 300_000
"""Milliseconds: browser, server and test share two processors with others."""
expect.set_options(timeout=PATIENCE)


def patient(context: BrowserContext) -> BrowserContext:
    context.set_default_timeout(PATIENCE)
    return context


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = chromium.find()
    if found is None:
        lacking(f"Chromium not found: {chromium.REMEDY}")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, timeout=PATIENCE, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Seen:
    """A fleet that a browser looks at. ``state``: the cookie of its login."""

    up: Up
    browser: Browser
    url: str
    state: dict[str, object]

    def page(self, width: str = "desktop", scheme: str = "light") -> Page:
        """A new window; what it says on its console or fails with is kept in ``page.trouble``."""
        context = patient(
            self.browser.new_context(
                viewport=WIDTHS[width], color_scheme=scheme, storage_state=self.state, reduced_motion="reduce"
            )
        )
        page = context.new_page()
        page.trouble = []  # type: ignore[attr-defined]
        page.on("console", lambda said: page.trouble.append(said.text) if said.type == "error" else None)  # type: ignore[attr-defined]
        page.on("pageerror", lambda error: page.trouble.append(str(error)))  # type: ignore[attr-defined]
        return page

    def open(self, page: Page, path: str) -> None:
        page.goto(f"{self.url}/#/{path}")
        page.wait_for_selector("main h1")
        page.wait_for_selector(".live:not(.lost)")


@pytest.fixture(scope="session")
def demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Seen]:
    """The example of `nodewright up`: a Cluster with three workers, all Ready."""
    folder = tmp_path_factory.mktemp("up")
    with Up(folder, kubectl_binary, "--autoscaler") as up:
        link = up.says("Web view: ").split()[2]
        example = write_example(folder)
        up.kubectl("apply", "-f", str(example))
        up.kubectl.wait("condition=Available", "md/workers")
        yield seen(up, browser, link)


def seen(up: Up, browser: Browser, link: str) -> Seen:
    """Log in by the link, as a person does."""
    context = patient(browser.new_context())
    page = context.new_page()
    page.goto(link)
    page.wait_for_selector("nav")
    assert "token" not in page.url
    state = json.loads(json.dumps(context.storage_state()))
    context.close()
    return Seen(up, browser, link.partition("/#")[0], state)

"""The web view on 10,000 Machines in a real Chromium. It takes minutes to make them, so `make test-long` runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from hack.fleet import fill, join
from hack.program import Program, Up
from tests.web.conftest import Seen, seen
from tests.web.test_in_a_browser import AT_MOST, VIEWS, check

pytestmark = pytest.mark.slow
MANY = 10_000
PODS = 2_000


class Ui(Program):
    """`nodewright ui` against a kubeconfig."""

    opening = "Web view: "


@pytest.fixture(scope="module")
def many(browser: Browser, tmp_path_factory: pytest.TempPathFactory, kubectl_binary: Path) -> Iterator[Seen]:
    """10,000 Machines in 20 sets of two Clusters, their Nodes, and pods that wait."""
    folder = tmp_path_factory.mktemp("many")
    with Up(folder, kubectl_binary, "--no-controllers", "--in-memory") as up:
        with ThreadPoolExecutor(1) as aside:  # this thread's event loop is the browser's
            aside.submit(lambda: asyncio.run(fill(up.kubeconfig, MANY))).result()
            aside.submit(lambda: asyncio.run(join(up.kubeconfig, MANY, PODS))).result()
        ui = Ui(folder, up.kubectl, "ui", f"--kubeconfig={up.kubeconfig}")
        link = ui.start().split()[2]
        try:
            yield seen(up, browser, link)
        finally:
            ui.stop()


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "dark"), ("phone", "light")])
@pytest.mark.parametrize("view", [view for view in VIEWS if view != "plan"])
def test_each_view_on_ten_thousand_machines(many: Seen, view: str, width: str, scheme: str) -> None:
    page = many.page(width, scheme)
    many.open(page, view)
    check(page, f"{view}-{MANY}-{width}-{scheme}")
    page.context.close()


def test_ten_thousand_are_counted_and_drilled_into(many: Seen) -> None:
    page = many.page()
    many.open(page, "fleet")
    expect(page.locator(".total b").first).to_have_text(f"{MANY:,}", timeout=AT_MOST)
    page.get_by_role("button", name="Cluster", exact=True).click()
    page.locator(".card", has_text="west").click()
    page.get_by_role("button", name="State", exact=True).click()
    page.locator(".card", has_text="going").first.click()
    rows = page.get_by_role("region", name="Machines").locator("tbody tr")
    expect(rows).not_to_have_count(0, timeout=AT_MOST)
    expect(rows.first).to_contain_text("going")
    page.locator(".crumb").first.click()
    page.context.close()


def test_the_board_names_the_budget_that_holds_machines(many: Seen) -> None:
    page = many.page()
    many.open(page, "deletions")
    expect(page.locator("main")).to_contain_text(f"{MANY // 50} × PodDisruptionBudget shop/web", timeout=AT_MOST)
    page.context.close()


def test_the_autoscaler_answers_what_if_on_ten_thousand_machines(many: Seen) -> None:
    page = many.page()
    many.open(page, "autoscaler")
    expect(page.get_by_role("region", name="Groups", exact=True).locator("tbody tr")).to_have_count(20, timeout=AT_MOST)
    expect(page.locator(".matrix").first).to_contain_text("default/web-", timeout=AT_MOST)
    page.get_by_label("Pods", exact=True).fill("50")
    page.get_by_label("CPU of each").fill("16")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("Of 50 pods 0 fit on Nodes", timeout=AT_MOST)
    expect(page.locator("main")).to_contain_text("0 on new Nodes, 50 on none", timeout=AT_MOST)
    check(page, f"whatif-{MANY}")
    page.context.close()

"""The web view in a real Chromium: each view, phone and desktop, live, by keyboard, and nothing serious for axe."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.docs.pages import ROOT
from tests.web.conftest import PICTURES, Seen, patient

pytestmark = pytest.mark.slow
VIEWS = ("fleet", "rollouts", "deletions", "sizes", "autoscaler", "accounts", "plan")
AT_MOST = 300_000
"""Milliseconds that a condition is waited for: how long it takes is measured by `make bench`."""


def settled(page: Page) -> None:
    """Nothing says any more that it is being read."""
    expect(page.locator("main")).not_to_contain_text("Reading…", timeout=AT_MOST)
    expect(page.locator("main")).not_to_contain_text("Looking…", timeout=AT_MOST)


def check(page: Page, name: str) -> None:
    """A picture of it, no trouble on the console, nothing wider than the window, nothing serious for axe."""
    settled(page)
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)
    assert page.trouble == []  # type: ignore[attr-defined]
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [_told(each) for each in found if each["impact"] in {"serious", "critical"}]
    assert serious == []


def _told(violation: dict[str, Any]) -> str:
    nodes = "; ".join(str(node["html"])[:160] for node in violation["nodes"][:3])
    return f"{violation['id']}: {violation['help']}: {nodes}"


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
@pytest.mark.parametrize("view", VIEWS)
def test_each_view_on_three_machines(demo: Seen, view: str, width: str, scheme: str) -> None:
    page = demo.page(width, scheme)
    demo.open(page, view)
    check(page, f"{view}-3-{width}-{scheme}")
    page.context.close()


def test_a_change_is_seen_without_a_reload(demo: Seen) -> None:
    page = demo.page()
    demo.open(page, "fleet")
    expect(page.locator(".total b").first).to_have_text("3", timeout=AT_MOST)
    demo.up.kubectl("scale", "md/workers", "--replicas=4")
    expect(page.locator(".total b").first).to_have_text("4", timeout=AT_MOST)
    demo.up.kubectl("scale", "md/workers", "--replicas=3")
    expect(page.locator(".total b").first).to_have_text("3", timeout=AT_MOST)
    assert page.trouble == []  # type: ignore[attr-defined]
    page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_a_machine_has_its_life_and_its_owner_its_tree(demo: Seen, width: str, scheme: str) -> None:
    page = demo.page(width, scheme)
    demo.open(page, "fleet")
    page.get_by_role("region", name="Machines").get_by_role("link").first.click()
    expect(page.locator(".gantt .label").first).to_have_text("Host is made", timeout=AT_MOST)
    check(page, f"machine-{width}-{scheme}")
    demo.open(page, "object/MachineDeployment/default/workers")
    expect(page.locator(".tree").first).to_contain_text("MachineSet/workers", timeout=AT_MOST)
    check(page, f"object-{width}-{scheme}")
    page.context.close()


def test_a_plan_is_drawn_before_anything_is_applied(demo: Seen) -> None:
    page = demo.page()
    demo.open(page, "plan")
    text = demo.up.kubectl("get", "md/workers", "-o", "yaml").replace("replicas: 3", "replicas: 5", 1)
    declared = text.partition("\nstatus:")[0]
    page.get_by_role("textbox", name="Manifests").fill(_without_server_fields(declared))
    page.get_by_role("button", name="Plan").click()
    expect(page.locator(".deed").first).to_be_visible(timeout=AT_MOST)
    check(page, "plan-made-desktop-light")
    assert demo.up.kubectl.json("get", "md/workers")["spec"]["replicas"] == 3
    page.context.close()


def _without_server_fields(text: str) -> str:
    obj = yaml.safe_load(text)
    obj["metadata"] = {name: obj["metadata"][name] for name in ("name", "namespace", "labels")}
    return yaml.safe_dump(obj)


def test_text_of_others_is_text(demo: Seen) -> None:
    """An Event's message that is markup is read, not run."""
    machine = demo.up.kubectl.items("machines")[0]["metadata"]
    about = {"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine", "namespace": "default"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "hostile", "namespace": "default"},
        "type": "Warning",
        "reason": "<b>Bold</b>",
        "message": "<img src=x onerror='document.title=1'><script>document.title=2</script>",
        "involvedObject": {**about, "name": machine["name"], "uid": machine["uid"]},
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    demo.up.kubectl("apply", "-f", "-", stdin=json.dumps(event))
    page = demo.page()
    demo.open(page, f"machine/default/{machine['name']}")
    expect(page.locator("main")).to_contain_text("<script>document.title=2</script>", timeout=AT_MOST)
    assert page.title() == "Machine · Nodewright"
    assert page.locator("main img").count() == 0
    assert page.trouble == []  # type: ignore[attr-defined]
    page.context.close()


def test_a_reason_leads_to_its_runbook(demo: Seen) -> None:
    scenario = ("-f", str(ROOT / "examples" / "scenarios" / "quota.yaml"))
    demo.up.kubectl("apply", *scenario)
    page = demo.page()
    demo.open(page, "fleet")
    page.get_by_role("link", name="QuotaExceeded").first.click(timeout=AT_MOST)
    expect(page.locator("main h1")).to_have_text("Runbook")
    expect(page.locator("main h2")).to_have_text("QuotaExceeded", timeout=AT_MOST)
    expect(page.locator("main")).to_contain_text("Free or raise the quota")
    expect(page.locator("main pre")).to_contain_text("nodewright describe machine NAME")
    check(page, "runbook-desktop-light")
    demo.open(page, "runbook/nothing")
    expect(page.locator("main")).to_contain_text("Nobody has to do anything", timeout=AT_MOST)
    page.context.close()
    demo.up.kubectl("delete", "--wait", *scenario)


def test_everything_is_reached_by_keyboard(demo: Seen) -> None:
    page = demo.page()
    demo.open(page, "fleet")
    settled(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(2):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Rollouts"
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_have_text("Rollouts")
    page.context.close()


def test_a_used_link_lets_nobody_in(demo: Seen) -> None:
    context = patient(demo.browser.new_context())
    page = context.new_page()
    page.goto(f"{demo.url}/#token=guessed")
    expect(page.get_by_role("alert")).to_contain_text("nodewright ui")
    assert page.locator("nav").count() == 0
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
def test_what_if_is_asked_by_keyboard(demo: Seen, width: str, scheme: str) -> None:
    page = demo.page(width, scheme)
    demo.open(page, "autoscaler")
    page.get_by_label("Pods", exact=True).fill("2")
    page.get_by_label("Node selector").fill("disk=ssd")
    page.get_by_label("CPU of each").fill("2")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("Of 2 pods 0 fit on Nodes that are there", timeout=AT_MOST)
    check(page, f"whatif-{width}-{scheme}")
    page.get_by_label("CPU of each").fill("much")
    page.get_by_role("button", name="What if").click()
    expect(page.get_by_role("alert")).to_contain_text("cpu", timeout=AT_MOST)
    page.context.close()

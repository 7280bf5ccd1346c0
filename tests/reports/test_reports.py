"""What the web view draws, as values: cells, lanes, the deletion board, bars, sizes and accounts."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controllers.kernel.refs import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key
from nodewright.reports.accounts import Gauges, accounts
from nodewright.reports.deletions import board
from nodewright.reports.fleet.cells import Cells, as_values
from nodewright.reports.life import life
from nodewright.reports.rollouts import rollouts
from nodewright.reports.sizes import sizes
from nodewright.runtime.cache.store import Store
from tests.builders import NOW, FakeView, hostile, machine, machine_deployment, machine_set
from tests.builders.clock import ago


def cells_of(*builders: Any) -> Cells:
    cells = Cells()
    for each in builders:
        cells.put(each.build())
    return cells


def counts(cells: Cells, field: str) -> dict[str, int]:
    value = cells.value()
    at = value["fields"].index(field)
    found: dict[str, int] = {}
    for cell in value["cells"]:
        found[cell[at]] = found.get(cell[at], 0) + cell[-1]
    return found


def test_machines_that_are_alike_are_one_cell() -> None:
    owner = machine_set("web")
    cells = cells_of(*(machine(f"m-{n}").of(owner).in_domain("a" if n else "b").ready() for n in range(3)))
    assert len(cells.value()["cells"]) == 2
    assert counts(cells, "zone") == {"a": 2, "b": 1}
    assert counts(cells, "owner") == {"MachineSet/web": 3}
    assert counts(cells, "state") == {"Ready": 3}


def test_a_machine_that_changes_changes_its_cell_and_one_that_goes_leaves_none() -> None:
    cells = cells_of(machine("m").ready())
    cells.put(machine("m").failed().build())
    assert counts(cells, "state") == {"failed": 1}
    cells.drop(Key("default", "m"))
    assert (cells.value()["cells"], len(cells)) == ([], 0)


def test_rows_fit_what_is_wanted_and_those_in_trouble_stand_first() -> None:
    cells = cells_of(machine("a").ready(), machine("b").failed(), machine("c", "other").ready())
    assert [row["name"] for row in as_values(cells.rows({}))] == ["b", "a", "c"]
    assert [row["name"] for row in as_values(cells.rows({"namespace": "other"}))] == ["c"]


def rollout_of(deployment: Any, *sets: Any) -> dict[str, Any]:
    built = deployment.build()
    (found,) = rollouts([built], FakeView(built, *sets))["rollouts"]
    return dict(found)


def test_lanes_stand_with_the_newest_revision_first_and_empty_old_ones_are_left_out() -> None:
    deployment = machine_deployment("web").replicas(4).rolling("25%", 1)
    old = machine_set("web-1").of(deployment, "h1").replicas(1).revision(1)
    new = machine_set("web-2").of(deployment, "h2").replicas(4).revision(2)
    gone = machine_set("web-0").of(deployment, "h0").replicas(0)
    found = rollout_of(deployment, old, new, gone)
    assert [lane["set"] for lane in found["lanes"]] == ["web-2", "web-1"]
    assert (found["limits"]["surge"], found["limits"]["unavailable"]) == (1, 1)
    assert found["state"] == "going"


def test_a_window_says_whether_it_holds_and_when_that_changes() -> None:
    deployment = machine_deployment("web").budget(0, schedule="0 9 * * *", duration="8h").budget("50%")
    closed, always = rollout_of(deployment)["budgets"]
    assert (closed["holds"], closed["nodes"], closed["changes"]) == (True, 0, "2026-06-01T17:00:00Z")
    assert (always["holds"], always["changes"]) == (True, "")


def going(name: str, reason: str, message: str, **spec: Any) -> dict[str, Any]:
    body = machine(name).ready().deleting(120, "f").build()
    body["spec"] |= spec
    body["status"]["deletion"] = {"nodeDrainStartTime": ago(60)}
    body["status"]["conditions"] = [
        {"type": "Deleting", "status": "True", "reason": reason, "message": message, "lastTransitionTime": ago(60)}
    ]
    return body


def test_a_budget_that_holds_machines_is_named_with_all_of_them_since_when_and_until_when() -> None:
    text = "draining Node n: blocked: shop/web-0 (PodDisruptionBudget shop/web)"
    held = [going(f"m-{n}", "DrainBlocked", text, nodeDrainTimeout="10m") for n in range(2)]
    found = board([*held, machine("other").ready().build()], NOW)
    (holder,) = found["holders"]
    assert (found["total"], holder["holder"], holder["count"]) == (2, "PodDisruptionBudget shop/web", 2)
    assert holder["heldUp"]
    assert holder["runbook"] == "docs/runbooks.md#drainblocked"
    assert {each["name"] for each in holder["machines"]} == {"m-0", "m-1"}
    assert holder["machines"][0]["until"] == ago(60 - 600)
    assert holder["machines"][0]["then"] == "the drain ends"


def test_a_hook_is_named_and_what_holds_up_stands_above_what_goes_on() -> None:
    text = "waiting until the annotation pre-drain.nodewright.dev/backup is removed before draining"
    machines = [going("a", "Draining", "draining Node a"), going("b", "WaitingForHook", text)]
    holders = board(machines, NOW)["holders"]
    assert [each["holder"] for each in holders] == ["hook pre-drain.nodewright.dev/backup", "pods that are leaving"]
    assert holders[0]["machines"][0]["until"] == ""


def test_a_ready_machine_has_a_bar_for_each_stage_of_its_way() -> None:
    body = machine("m").created(180).build()
    body["status"] = {
        "conditions": [
            {"type": "InfrastructureReady", "status": "True", "lastTransitionTime": ago(60)},
            {"type": "Ready", "status": "True", "lastTransitionTime": ago(30)},
        ]
    }
    bars = life(body)
    assert [(each["name"], each["from"], each["to"]) for each in bars] == [
        ("Host is made", ago(180), ago(60)),
        ("Joins as a Node", ago(60), ago(30)),
        ("Ready", ago(30), ""),
    ]


def test_a_machine_without_a_host_says_what_it_waits_for() -> None:
    body = machine("m").created(30).build()
    body["status"] = {
        "conditions": [{"type": "InfrastructureReady", "status": "False", "reason": "StockOut", "message": "none left"}]
    }
    (bar,) = life(body)
    assert (bar["name"], bar["to"], bar["why"]) == ("Host is made", "", "StockOut: none left")


def test_a_deletion_has_its_stages_and_the_last_one_goes_on() -> None:
    bars = life(going("m", "DrainBlocked", "a budget"))
    assert [each["name"] for each in bars[-2:]] == ["Deletion is asked for", "Node is drained"]
    assert (bars[-1]["to"], bars[-1]["why"]) == ("", "DrainBlocked: a budget")


def test_the_last_writer_of_a_size_stands_first() -> None:
    body = machine_deployment("web").build()
    body["metadata"]["managedFields"] = [
        {"manager": "kubectl", "operation": "Apply", "time": ago(600), "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "nodewright", "operation": "Update", "time": ago(60), "subresource": "scale",
         "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        {"manager": "other", "operation": "Update", "time": ago(1), "fieldsV1": {"f:metadata": {}}},
    ]  # fmt: skip
    about = {"kind": "MachineDeployment", "namespace": "default", "name": "web"}
    event = {"reason": "ScalingUp", "involvedObject": about,
             "lastTimestamp": ago(60), "message": "3 → 5"}  # fmt: skip
    (group,) = sizes([(MACHINE_DEPLOYMENT, body)], [event])["groups"]
    assert [(each["manager"], each["through"]) for each in group["writers"]] == [
        ("nodewright", "scale"),
        ("kubectl", "spec"),
    ]
    assert group["events"][0]["message"] == "3 → 5"


def test_an_account_tells_its_hosts_what_is_refused_and_whether_calls_pause() -> None:
    body = machine("m").short("QuotaExceeded", "cores: 8 of 8").build()
    body["status"]["hostScope"] = "simulated/a"
    found = accounts([body], Gauges(True, {"simulated/a": 2}, frozenset({"simulated/a"})))
    (account,) = found["accounts"]
    assert (account["orphans"], account["pausing"]) == (2, True)
    assert [(each["reason"], each["count"]) for each in account["refusals"]] == [("QuotaExceeded", 1)]
    assert account["refusals"][0]["runbook"] == "docs/runbooks.md#quotaexceeded"


@given(data=st.data())
def test_no_json_makes_a_report_fail(data: st.DataObject) -> None:
    """Statuses and annotations are text of others; what the store admits is drawn or passed over."""
    objects: dict[Any, list[Any]] = {kind: [] for kind in (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT)}
    for obj in hostile.world():
        kind = hostile.kind_of(obj)
        if kind in objects:
            store = Store(kind)
            store.replace([data.draw(hostile.changes(obj))], "10")
            objects[kind] += list(store)
    cells = Cells()
    for each in objects[MACHINE]:
        cells.put(each)
        life(each)
    as_values(cells.rows({}))
    board(objects[MACHINE], NOW)
    accounts(objects[MACHINE], Gauges())
    sizes([(MACHINE_DEPLOYMENT, each) for each in objects[MACHINE_DEPLOYMENT]], objects[MACHINE])
    # A view knows what it was asked for, whatever an object says of its kind.
    sets = ({**each, "kind": MACHINE_SET.name} for each in objects[MACHINE_SET])
    rollouts(objects[MACHINE_DEPLOYMENT], FakeView(*sets))

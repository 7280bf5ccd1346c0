"""The proxy from end to end: what passes, what is taken over, and that a victim goes in the right order."""

from __future__ import annotations

from hack.cloudpool.scene import Scene


async def test_a_request_that_takes_nothing_away_passes(stage: Scene) -> None:
    await stage.node("n1")
    await stage.start()
    assert await stage.ask("GET", "/status") == (200, {"started": True, "configured": True})
    status, body = await stage.ask("GET", "/pool")
    assert status == 200
    assert [machine["id"] for machine in body["machines"]] == ["n1"]


async def test_one_victim_goes_from_its_pods_to_its_node(stage: Scene) -> None:
    for name in ("n1", "n2", "n3"):
        await stage.node(name)
    await stage.pod("a", "n1")
    await stage.pod("b", "n2", cpu="1")
    await stage.pod("c", "n3", cpu="2")
    await stage.start()
    assert await stage.set_size(2) == (200, "")
    assert stage.pool.terminated == ["n1"]
    assert stage.pool.chosen == []
    assert stage.pool.desired == 2
    assert set(await stage.nodes()) == {"n2", "n3"}
    assert await stage.pods() == {"b", "c"}
    assert stage.pool.asked("POST /pool/size") == []

"""What each hostile object takes of the event loop of the controllers: CPU time of one callback, never wall time."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, get_args

import pytest

from api import yamltext
from controllers.kernel.refs import MACHINE_SET, NAMESPACE, NODE, Key, Ref
from hack.hostile import attacks
from hack.hostile.server import hostile_server
from nodewright.runtime.kube.servers import ServerPolicy, Tls
from nodewright.runtime.workloads.options import WorkloadOptions
from tests.runtime.town import Town

HELD = 0.5
"""Seconds of CPU of this thread, ten times the rule: a slow machine must not decide. What a text of 262 KB or a bomb
took before it was bounded is more."""
VICTIM = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "victim", "labels": {"kubernetes.io/hostname": "victim"}},
    "spec": {"providerID": "simulated:///here/victim"},
}
OWNED = {
    "metadata": {
        "labels": {"app": "a"},
        "ownerReferences": [
            {"apiVersion": MACHINE_SET.api_version, "kind": "MachineSet", "name": "a", "uid": "u", "controller": True}
        ],
    }
}
REFUSED = {"templates", "shell"}
"""What the API server refuses never reaches a controller."""


@contextmanager
def holds() -> Iterator[dict[str, float]]:
    """The longest CPU time of one callback by the name of its task.

    Without the garbage collector: a full collection is as long as the heap of all tests is large, whoever it comes to.
    """
    found: dict[str, float] = {}
    run = asyncio.Handle._run

    def timed(handle: Any) -> None:
        task = getattr(handle._callback, "__self__", None)
        began = time.thread_time()
        run(handle)
        spent = time.thread_time() - began
        if isinstance(task, asyncio.Task):
            name = task.get_name().rstrip("0123456789")
            found[name] = max(found.get(name, 0.0), spent)

    gc.collect()
    gc.disable()
    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        gc.enable()
        asyncio.Handle._run = run  # type: ignore[method-assign]


ATTACKS = ("provider id", "pause, change, delete", "same name", "foreign owner", "same selector", "text", "structured",
           "bombs", "shapes", "templates", "servers", "shell", "flood")  # fmt: skip


@pytest.mark.slow  # it measures CPU time: on a machine at half speed the bound would be another
@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_hostile_object_holds_the_loop_of_the_controllers(town: Town, attack: str) -> None:
    town.options = replace(town.options, workloads=WorkloadOptions(servers=ServerPolicy(Tls.PLAIN)))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": attacks.NAME}}
    await town.client.create(NAMESPACE, namespace)
    await town.client.create(NODE, VICTIM)
    await town.client.report_status(Ref(NODE, Key("", "victim")), {"conditions": [{"type": "Ready", "status": "True"}]})
    async with town.controllers() as manager, hostile_server() as server:
        names = {f"{each.reconciler.name}-" for each in manager.controllers}
        names |= {f"reflect {reflector.kind.plural}" for reflector in manager.reflectors}
        hostile = attacks.Hostile(town.client, server, lambda: ([OWNED], town.objects(NODE)), flood=20)
        await hostile.one(attack)  # imports, and what is made once
        with holds() as found:
            await hostile.one(attack)
        longest = max(((spent, name) for name, spent in found.items() if name in names), default=(0.0, ""))
        print(f"{attack}: {longest[0] * 1000:.1f} ms at the longest, in {longest[1] or 'none: it was refused'}")
        assert found.keys() & names if attack not in REFUSED else hostile.refused["422"]
        assert longest[0] < HELD, longest[1]


async def test_what_reads_texts_of_others_is_loaded_before_the_first_reconcile(town: Town) -> None:
    """Loading the YAML parser takes 60 ms: the first text of a tenant that is not JSON must not pay for it."""
    yamltext._loader.cache_clear()
    async with town.controllers():
        assert yamltext._loader.cache_info().currsize == len(get_args(yamltext.Numbers))


def test_a_text_loads_no_module_once_the_parser_is_loaded() -> None:
    code = (
        "import sys; from api import yamltext; yamltext.load_parser(); before = set(sys.modules)\n"
        "yamltext.load(\"a: 'x'\\nb: [1.5, yes, 2026-01-01]\"); print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

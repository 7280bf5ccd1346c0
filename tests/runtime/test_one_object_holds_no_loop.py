"""No single object holds the event loop for long, of whatever kind it is and wherever it is large.

Every list, object and text in an object of every kind is made a megabyte large, one at a time, which is about what an
API server stores. Each synchronous step that the object is part of is measured: decoding its watch event, taking it
into the cache and its indexes, waking, comparing, and planning it and all that look at it. The webhook is a process of
its own and is not measured: its review of a selector with 36,000 keys takes 190 ms.

Slow, and not of ``make test``: it measures CPU time of the thread, the least of several repeats, without the garbage
collector. On a machine whose processor is shared that is no certain figure, though the bound is set by how fast the
machine is. The controllers that look at the whole cluster at once (autoscaler, provisioningrequest) are left out: they
run on request, and read what is large of pods and StorageClasses.
"""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any

import orjson
import pytest

from controllers.certificatesigningrequest.reconciler import RECONCILER as REQUESTS
from controllers.kernel.refs import Key, key_of
from nodewright.runtime.cache.shape import MOST_ITEMS
from nodewright.runtime.cache.store import Change
from nodewright.runtime.fleet.lifetimes import Lifetimes
from nodewright.runtime.kube.answers import event_of
from nodewright.runtime.kube.errors import MalformedAnswerError
from nodewright.runtime.settings import wiring
from nodewright.runtime.writes import failing
from tests.builders import hostile
from tests.builders.clock import NOW
from tests.runtime.test_any_json import IDS, OBJECTS, Scene, reads

LARGE = 1_000_000
"""Bytes as JSON. etcd takes no request above 1.5 MiB."""
BOUND = 0.05
REFERENCE = 0.02
"""Seconds that ``_reference`` takes where the bound was set; a slower machine has a longer one."""
REPEATS = 3
RECONCILERS = (*wiring.reconcilers(), REQUESTS)
_FIXED = {("apiVersion",), ("kind",), *(("metadata", name) for name in ("name", "namespace", "uid", "resourceVersion"))}

Path = tuple[str | int, ...]


def _reference() -> float:
    """CPU seconds of a fixed piece of work like the program's own: JSON read and looked through."""
    text = orjson.dumps([{"key": f"k{number}", "value": [number]} for number in range(20_000)])

    def work() -> None:
        for _ in range(2):
            sum(len(each) for each in orjson.loads(text) if each["value"])

    return min(_timed(work) for _ in range(7))


def _timed(work: Callable[[], object]) -> float:
    began = thread_time()
    work()
    return thread_time() - began


def _places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, value
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _places(each, (*path, name))
    elif isinstance(value, list):
        for index, each in enumerate(value[:1]):
            yield from _places(each, (*path, index))


def _made_large(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        yield "x" * LARGE
    if isinstance(value, list):
        item = value[0] if value else {}
        count = LARGE // (len(orjson.dumps(item)) + 1)
        yield [copy.deepcopy(item) for _ in range(count)]
        named = [name for name in ("name", "type", "key", "uid") if isinstance(item, dict) and name in item]
        if named:
            yield [{**copy.deepcopy(item), **dict.fromkeys(named, f"n{number}")} for number in range(count)]
    if isinstance(value, dict):
        yield {**value, **{f"k{number}.example.com/a": "v" for number in range(LARGE // 28)}}
        yield {**value, "zz": [[] for _ in range(LARGE // 3)]}


def _large(original: dict[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path, value in _places(original):
        if not path or path in _FIXED:
            continue
        for large in _made_large(value):
            changed = copy.deepcopy(original)
            target: Any = changed
            for name in path[:-1]:
                target = target[name]
            target[path[-1]] = large
            changed["metadata"]["resourceVersion"] = "99"
            yield path, changed


def _steps(obj: dict[str, Any]) -> dict[str, float]:
    """CPU seconds of each step that ``obj`` is part of; it replaces its namesake in the valid world."""
    scene, kind, key, spent = Scene(), hostile.kind_of(obj), key_of(obj), dict[str, float]()
    before, found = scene.cache.stores[kind].get(key), list[Any]()
    line = orjson.dumps({"type": "MODIFIED", "object": obj})
    try:
        spent["decode"] = _timed(lambda: found.append(event_of(line, kind, 4 << 30)))
    except MalformedAnswerError:
        return spent
    spent["cache"] = _timed(lambda: scene.cache.watched(kind, "MODIFIED", found[0]["object"]))
    after = scene.cache.stores[kind].get(key)
    assert before is not None
    assert after is not None
    change = Change(kind, key, before, after)
    spent["own note"] = _timed(lambda: failing.is_own_note(before, after))
    lifetimes = Lifetimes(scene.cache, lambda: NOW)
    spent["lifetimes"] = _timed(lambda: lifetimes.node_elsewhere(Key("default", "c"), change, False))
    for reconciler in RECONCILERS:
        for wake in reconciler.wakes:
            if wake.kind == kind:
                spent[f"{reconciler.name} wakes"] = _timed(lambda wake=wake: _wake(wake, scene, change))  # type: ignore[misc]
        store = scene.cache.stores[reconciler.kind]
        for each in list(store.keys()):
            if store.faults(each):
                continue
            whose = "itself" if each == key else str(each)
            for number, hosts in enumerate(reads(reconciler, each)):
                plan = lambda r=reconciler, k=each, h=hosts: _plan(r, k, scene, h)  # noqa: E731
                spent[f"{reconciler.name} plans {whose} {number}"] = _timed(plan)
    return spent


def _wake(wake: Any, scene: Scene, change: Change) -> None:
    if wake.ignores is not None:
        wake.ignores(change.old, change.new)
    for version in (change.old, change.new):
        for key in wake.keys(version, scene.view):
            if wake.gathers is not None:
                wake.gathers(key, scene.view)


def _plan(reconciler: Any, key: Key, scene: Scene, hosts: Any) -> None:
    reconciler.needs(key, scene.view)
    observed = reconciler.observe(key, scene.view, hosts)
    if observed is not None:
        reconciler.plan(observed)


def _longest(obj: dict[str, Any], bound: float) -> dict[str, float]:
    """Steps that take longer than ``bound`` each time; those that did not are not tried again."""
    gc.collect()
    least = _steps(obj)
    for _ in range(REPEATS - 1):
        if all(seconds <= bound for seconds in least.values()):
            break
        least = {name: min(seconds, least.get(name, seconds)) for name, seconds in _steps(obj).items()}
    return {name: seconds for name, seconds in least.items() if seconds > bound}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(OBJECTS)), ids=IDS)
def test_no_step_of_an_object_that_is_large_somewhere_takes_long(number: int) -> None:
    late: list[str] = []
    gc.disable()
    try:
        bound = BOUND * max(1.0, _reference() / REFERENCE)
        for path, obj in _large(OBJECTS[number]):
            for name, seconds in _longest(obj, bound).items():
                late.append(f"{'.'.join(map(str, path))}: {name} takes {seconds * 1000:.0f} ms")
    finally:
        gc.enable()
    assert not late, f"the bound here is {bound * 1000:.0f} ms: " + "; ".join(late)


@pytest.mark.parametrize(
    ("path", "large"),
    [
        (("spec", "selector", "matchLabels"), {f"k{number}": "v" for number in range(MOST_ITEMS + 1)}),
        (("spec", "template", "spec"), {f"k{number}": "v" for number in range(MOST_ITEMS + 1)}),
        (("spec", "template", "spec", "taints"), [{"key": "a", "effect": "NoSchedule"}] * (MOST_ITEMS + 1)),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_a_spec_with_too_many_items_is_malformed(path: tuple[str, ...], large: Any) -> None:
    scene = Scene()
    obj = copy.deepcopy(next(each for each in OBJECTS if each["kind"] == "MachineDeployment"))
    target = obj
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = large
    obj["metadata"]["resourceVersion"] = "99"
    scene.shows(obj)
    faults = scene.cache.stores[hostile.kind_of(obj)].faults(key_of(obj))
    assert faults == (f"{'.'.join(path)}: must not have more than {MOST_ITEMS} items",)


def test_metadata_with_too_many_fields_keeps_those_that_are_known() -> None:
    scene, obj = Scene(), copy.deepcopy(OBJECTS[0])
    obj["metadata"] |= {f"k{number}": "v" for number in range(MOST_ITEMS)} | {"resourceVersion": "99"}
    scene.shows(obj)
    found = scene.cache.stores[hostile.kind_of(obj)].get(key_of(obj))
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "99"
    assert "k1" not in found["metadata"]


def test_configs_of_every_provider_load_no_module_once_the_controllers_have_begun() -> None:
    """A provider's package took 67 ms to load, in the middle of the first reconcile that named it."""
    code = """
import sys
from api import yamltext
from nodewright.runtime.manager import Manager
from nodewright.runtime.settings import wiring
from providers.base.registry import Registry
wiring.reconcilers()
registry = Registry.installed()
yamltext.load_parser()
registry.load()
before = set(sys.modules)
for registration in registry.registrations():
    for kind in registration.config_kinds:
        config = {"apiVersion": kind.api_version, "kind": kind.kind, "x": 1}
        registry.problems(config)
        try:
            registration.scope_of(config)
        except Exception:
            pass
registry.problems({"apiVersion": "nobody.example.com/v1", "kind": "X"})
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

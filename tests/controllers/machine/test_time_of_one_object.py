"""No object, however hostile, holds the event loop: what is read of it is bounded before it is worked on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from api.providerconfig import ParsedTexts
from api.validate import validate
from controllers.autoscaler.prices import PriceTableError, read_table
from controllers.machine.host_spec import desired_host
from controllers.provisioningrequest.options import Limits, read_defaults
from nodewright.gateways.admission.review import judge
from providers.base.registry import Registry
from tests.builders import SIMULATED, machine
from tests.controllers.machine.arena import Arena

MEASURED = 0.5
"""Seconds of CPU of this thread, the least of some tries: ten times the bound, and a tenth of what it used to be."""
REGISTRY = Registry.installed()
_MANY = {f"unknown{i:05}": i for i in range(1900)}
CONFIGS: dict[str, Any] = {
    "262 KB of text": "a:\n" + "- b: {c: d}\n" * 22_000,
    "text as large as may be, of values": "{" + ",".join(f"a{i}" for i in range(4000)) + "}",
    "text as large as may be, nested": "[" * 32_000,
    "text as large as may be, of quotes": "a: '" + "''" * 16_000 + "'",
    "text as large as may be, of tags": "- !!str a\n" * 3200,
    "text as large as may be, of unknown fields": json.dumps({**SIMULATED, **_MANY})[:32_768],
    "781 KB of an object": {"value": {**SIMULATED, "x": ["abcdefg"] * 78_000}},
    "a deep object": {"value": {**SIMULATED, "x": json.loads("[" * 300 + "]" * 300)}},
    "unknown fields": {"value": {**SIMULATED, **_MANY}},
    "long names": {"value": {**SIMULATED, **{f"{i}{'bootSeconds' * 200}": 1 for i in range(14)}}},
    "1 MB under an unknown field": {"value": SIMULATED, "x": ["y" * 10] * 80_000},
}
SPECS: dict[str, dict[str, Any]] = {
    **{name: {"providerConfig": config} for name, config in CONFIGS.items()},
    "unknown fields beside it": {f"providerConfih{i:06}": i for i in range(50_000)},
    "many labels": {"metadata": {"labels": {f"a b{i}": "x y" for i in range(50_000)}}},
    "many taints": {"taints": [{"key": f"a b{i}", "effect": "x"} for i in range(20_000)]},
}


def _cpu_of(work: Callable[[], object]) -> float:
    found = []
    for _ in range(5):
        began = time.thread_time()
        work()
        found.append(time.thread_time() - began)
        if found[-1] < MEASURED:
            break
    return min(found)


@pytest.mark.parametrize("case", SPECS)
def test_a_hostile_machine_is_read_in_no_time(case: str) -> None:
    obj = machine("m-1").build()
    obj["spec"] = {**obj["spec"], **SPECS[case]}
    arena = Arena()
    number = iter(range(100))

    def look() -> None:
        obj["metadata"]["uid"] = f"uid-{next(number)}"
        config = desired_host(obj, arena.view).request
        if config is not None:
            REGISTRY.problems(config.config)

    assert _cpu_of(look) < MEASURED


@pytest.mark.parametrize("case", CONFIGS)
def test_a_hostile_text_is_parsed_in_no_time(case: str) -> None:
    """Without what was remembered of it, and without a bound on its size."""
    config = CONFIGS[case]
    text = config if isinstance(config, str) else json.dumps(config)
    assert _cpu_of(lambda: ParsedTexts().get(text[:32_768])) < MEASURED


@pytest.mark.parametrize("case", CONFIGS)
def test_a_hostile_review_is_answered_in_no_time(case: str) -> None:
    obj = machine("m-1").build()
    obj["spec"] = {**obj["spec"], "providerConfig": CONFIGS[case]}
    assert _cpu_of(lambda: judge({"operation": "CREATE", "object": obj}, REGISTRY)) < MEASURED
    assert _cpu_of(lambda: validate(obj)) < MEASURED


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)
)


@pytest.mark.parametrize("text", [BOMB, "a: " + "[" * 500_000, "a: 1" + ":59" * 300_000, "- a\n" * 250_000])
def test_a_hostile_config_map_is_read_in_no_time(text: str) -> None:
    def prices() -> None:
        with pytest.raises(PriceTableError):
            read_table(text)

    assert _cpu_of(prices) < MEASURED
    assert _cpu_of(lambda: read_defaults({"class": text}, Limits())) < MEASURED

"""Writes that nobody thought of: random ones to a few objects, in one order to both planes, with the same answers.

The objects of each example have names of their own, and rows of `docs/embedded-differences.md` that are about every
request hold here too. The examples are the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.differential.comparing import TALLY, Both, Case, tally
from tests.differential.sending import space, widgets
from tests.differential.speech import Request, Story, play
from tests.kubectl.manifests import GROUP
from tests.realplane import REAL

pytestmark = REAL

EXAMPLES = 60
_W = widgets("generated")
_NUMBERS = count(1)
_NAMES = ("a", "b")
_HOLD = f"{GROUP}/hold"

_PARTS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(("lid", "leg", "arm"))}, optional={"count": st.integers(-1, 3)}),
    max_size=3,
)
_EXTRA = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(("", "x", "é")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("p", "q")), inner, max_size=2),
    max_leaves=4,
)
_SPEC = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(-1, 101) | st.just("big"),
        "color": st.sampled_from(("red", "green", "pink")),
        "replicas": st.integers(-1, 3),
        "owner": st.sampled_from(("ann", "")),
        "parts": _PARTS,
        "extra": st.dictionaries(st.sampled_from(("p", "q")), _EXTRA, max_size=2),
    },
)
_LABELS = st.dictionaries(st.sampled_from(("tier", "a/b", "-")), st.sampled_from(("gold", "", "no good")), min_size=1)
_META = st.fixed_dictionaries(
    {},
    optional={
        "labels": _LABELS,
        "annotations": st.dictionaries(st.sampled_from(("n", "x/y")), st.just("1"), min_size=1),
        "finalizers": st.sampled_from(([_HOLD], [_HOLD, f"{GROUP}/two"])),
    },
)
_STATUS = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(("Sold", "Kept")),
        "replicas": st.integers(0, 2),
        "conditions": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(("Ready", "New")), "status": st.sampled_from(("True", "False"))}
            ),
            max_size=2,
        ),
    },
)
_NULLS = {"owner": None, "parts": None, "extra": None, "color": None}
_MANAGERS = st.sampled_from(("ann", "bob"))
_POINTERS = st.sampled_from(
    ("/spec/size", "/spec/parts/0", "/spec/parts/-", "/spec/owner", "/metadata/labels", "/spec")
)
_OPERATION = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(("add", "replace", "test")), "path": _POINTERS, "value": _EXTRA}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": _POINTERS}),
    st.fixed_dictionaries({"op": st.sampled_from(("copy", "move")), "from": _POINTERS, "path": _POINTERS}),
)

Write = Callable[[str, str], Request]
"""From label and name to a request."""


def _body(name: str, spec: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    return {**_W.body(name, spec=spec), "metadata": {"name": name, **meta}}


def _replicas(number: int) -> dict[str, Any]:
    return {"spec": {"replicas": number}}


def _merge(meta: dict[str, Any], spec: dict[str, Any], gone: set[str], by: str) -> Write:
    body = {"metadata": meta, "spec": {**spec, **{key: _NULLS[key] for key in gone}}}
    return lambda label, name: _W.patch(label, name, body, fieldManager=by)


_WRITES: st.SearchStrategy[Write] = st.one_of(
    st.builds(lambda s, m: lambda label, name: _W.create(label, _body(name, s, m)), _SPEC, _META),
    st.builds(_merge, _META, _SPEC, st.sets(st.sampled_from(sorted(_NULLS)), max_size=2), _MANAGERS),
    st.builds(
        lambda s, m, by, force: (
            lambda label, name: _W.apply(label, name, _body(name, s, m), by, force="true" if force else "false")
        ),
        _SPEC,
        _META,
        _MANAGERS,
        st.booleans(),
    ),
    st.builds(lambda ops: lambda label, name: _W.patch(label, name, ops, "json"), st.lists(_OPERATION, max_size=3)),
    st.builds(lambda s: lambda label, name: _W.update(label, name, {"spec": s}), _SPEC),
    st.builds(lambda s: lambda label, name: _W.patch(label, name, {"status": s}, sub="status"), _STATUS),
    st.builds(
        lambda n: lambda label, name: _W.patch(label, name, {"spec": {"replicas": n}}, sub="scale"), st.integers(0, 3)
    ),
    st.just(_W.delete),
    st.just(_W.get),
)


@pytest.fixture(scope="module")
def generated(both: Both) -> list[Case]:
    """What was compared so far, in a namespace of its own on both planes."""
    for server in (both.ours, both.theirs):
        play(server, [space("generated")])
    return []


def test_random_writes_are_answered_alike(
    both: Both, generated: list[Case], record_property: Callable[[str, object], None]
) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.tuples(st.sampled_from(_NAMES), _WRITES), min_size=1, max_size=10))
    def alike(writes: list[tuple[str, Write]]) -> None:
        number = next(_NUMBERS)
        first = _W.create("first", _body(f"a{number}", {"size": 5}, {}))
        requests = [first] + [write(str(n), f"{name}{number}") for n, (name, write) in enumerate(writes)]
        cases = both.compare(Story("generated", tuple(requests)))
        assume(cases)
        generated.extend(cases)
        unlisted = [case.tell() for case in cases if case.unlisted]
        assert not unlisted, "\n".join([*(f"{r.method} {r.path} {r.body}" for r in requests), *unlisted])

    alike()
    record_property(TALLY, tally(generated))

"""Webhook, ``validate`` and controller give one verdict on every form of a configuration, since one parser reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.limits import MAX_PROVIDER_CONFIG, MAX_PROVIDER_CONFIG_VALUES
from api.providerconfig import ParsedTexts
from api.validate import validate
from controllers.kernel.provider_config import Resolved, resolve
from nodewright.cli.manifests.checks import Checker, by_schema
from nodewright.cli.manifests.documents import Document, read
from nodewright.gateways.admission.review import judge
from providers.base.registry import Registry
from tests.builders import SIMULATED, machine, machine_class
from tests.controllers.machine.arena import Arena

REGISTRY = Registry.installed()
TEXT = json.dumps(SIMULATED)
CLASS = {"machineClass": {"name": "small"}}
ABSENT = object()
FORMS: dict[str, Any] = {
    "absent": ABSENT,
    "null": None,
    "empty text": "",
    "empty object": {},
    "JSON": TEXT,
    "broken text": "a: [1",
    "value": {"value": SIMULATED},
    "text in value": {"value": TEXT},
    "empty value": {"value": {}},
    "empty text in value": {"value": ""},
    "value and empty valueFrom": {"value": SIMULATED, "valueFrom": {}},
    "value and null valueFrom": {"value": SIMULATED, "valueFrom": None},
    "value and valueFrom": {"value": SIMULATED, "valueFrom": CLASS},
    "null value and valueFrom": {"value": None, "valueFrom": CLASS},
    "valueFrom": {"valueFrom": CLASS},
    "valueFrom elsewhere": {"valueFrom": {"machineClass": {"name": "small", "namespace": "other"}}},
    "a number": 5,
    "a type that nobody has": {"value": {"apiVersion": "a", "kind": "1"}},
}


def _spec(config: Any, spec: Any) -> dict[str, Any]:
    given = {"providerConfig": config, "providerSpec": spec}
    return {name: content for name, content in given.items() if content is not ABSENT}


def _verdicts(given: dict[str, Any]) -> dict[str, bool]:
    """Whether each of the three takes a Machine with that configuration, beyond what the CRD's schema refuses.

    A type that no provider here has may be that of another program, so the webhook only warns of it.
    """
    obj = machine("m-1").build()
    obj["spec"] = {**{k: v for k, v in obj["spec"].items() if k not in ("providerConfig", "providerSpec")}, **given}
    arena = Arena()
    arena.view.put(machine_class("small"))
    found = resolve(obj["spec"], obj["metadata"]["namespace"], arena.view)
    webhook = judge({"operation": "CREATE", "object": obj}, REGISTRY)
    return {
        "webhook": webhook.allowed and not any("no installed provider" in warning for warning in webhook.warnings),
        "validate": not _findings(obj),
        "controller": isinstance(found, Resolved) and not list(REGISTRY.problems(found.config)),
    }


def _schema_takes(given: dict[str, Any]) -> bool:
    obj = machine("m-1").build()
    obj["spec"] = {**{k: v for k, v in obj["spec"].items() if k not in ("providerConfig", "providerSpec")}, **given}
    return not list(by_schema(obj, "cluster.k8s.io", "v1alpha1"))


def _findings(obj: dict[str, Any]) -> list[Any]:
    (document,) = read(json.dumps(obj))
    assert isinstance(document, Document)
    return Checker(REGISTRY).check("file", document)


@pytest.mark.parametrize("config", FORMS)
def test_all_forms_have_one_verdict(config: str) -> None:
    for name, form in FORMS.items():
        verdicts = _verdicts(_spec(FORMS[config], form))
        if not _schema_takes(_spec(FORMS[config], form)):
            del verdicts["validate"]  # it has refused by the schema already
        assert len(set(verdicts.values())) == 1, (config, name, verdicts)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text("ab:-{[*& 1", max_size=5)
    | st.sampled_from([TEXT, "a: 1", "*a", "{"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["value", "valueFrom", "machineClass", "name", "namespace", "apiVersion", "kind"]), inner
        )
    ),
    max_leaves=8,
)


@given(ANY, ANY)
def test_any_json_has_one_verdict(config: Any, spec: Any) -> None:
    verdicts = _verdicts(_spec(config, spec))
    if not _schema_takes(_spec(config, spec)):
        del verdicts["validate"]  # it has refused by the schema already
    assert len(set(verdicts.values())) == 1, verdicts


LARGE: dict[str, Any] = {
    "text": {"value": json.dumps({**SIMULATED, "x": "y" * MAX_PROVIDER_CONFIG})},
    "text of the first generation": json.dumps({**SIMULATED, "x": "y" * MAX_PROVIDER_CONFIG}),
    "an object": {"value": {**SIMULATED, "x": "y" * MAX_PROVIDER_CONFIG}},
    "an object of many values": {"value": {**SIMULATED, "x": [1] * MAX_PROVIDER_CONFIG_VALUES}},
    "text of many values": {"value": json.dumps({**SIMULATED, "x": [1] * MAX_PROVIDER_CONFIG_VALUES})},
}


@pytest.mark.parametrize("case", LARGE)
def test_what_is_too_large_is_refused_by_all_three(case: str) -> None:
    assert _verdicts({"providerConfig": LARGE[case]}) == {"webhook": False, "validate": False, "controller": False}
    obj = machine("m-1").build()
    obj["spec"] |= {"providerConfig": LARGE[case]}
    (fault, *_) = validate(obj)
    assert fault.path.startswith("spec.providerConfig")
    assert "more than" in fault.message


def test_a_text_is_parsed_once_and_the_memory_of_texts_is_bounded() -> None:
    texts = ParsedTexts(capacity=1 << 20)
    for number in range(500):
        for _ in range(3):
            assert texts.get(f"a: {number}\nb: {'x' * 20_000}")[0] is not None
    assert texts.parsed == 500
    assert texts.size <= 1 << 20

"""Reviews as a table: what is refused, what is only warned of, and what no check may ever keep from going."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from api.selectors import SelectorError, from_label_selector
from api.validate import MOST_FAULTS, validate
from nodewright.gateways.admission.review import BadReviewError, review, review_text
from providers.base.contract import ConfigKind, Registration
from providers.base.registry import Registry
from tests.builders.objects import Builder, machine, machine_class, machine_deployment, machine_set

SCHEMA = {
    "type": "object",
    "properties": {
        "apiVersion": {},
        "kind": {},
        "size": {"enum": ["small", "large"]},
        "password": {"type": "string"},
    },
    "additionalProperties": False,
}
FAKE = {"apiVersion": "fake.dev/v1", "kind": "Fake"}


def _asked(*_: Any) -> Any:
    raise AssertionError("a review must not open a provider")


REGISTRY = Registry.of(Registration("fake", (ConfigKind("fake.dev/v1", "Fake", SCHEMA),), _asked, _asked))


def asked(obj: Builder, operation: str = "CREATE", old: Builder | None = None, **request: Any) -> dict[str, Any]:
    body = obj.build()
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "r-1",
            "kind": {"group": "cluster.k8s.io", "version": "v1alpha1", "kind": body["kind"]},
            "operation": operation,
            "name": body["metadata"].get("name", ""),
            "namespace": "default",
            "object": None if operation == "DELETE" else body,
            "oldObject": old.build() if old else None,
            **request,
        },
    }


def told(body: dict[str, Any]) -> dict[str, Any]:
    response: dict[str, Any] = review(body, REGISTRY)["response"]
    assert response["uid"] == "r-1"
    return response


def fields(response: dict[str, Any]) -> list[str]:
    return [cause["field"] for cause in response["status"]["details"]["causes"]] if "status" in response else []


def good() -> Builder:
    return machine_set("ms").provider_config(**FAKE, size="small")


def bad() -> Builder:
    return machine_set("ms").provider_config(**FAKE, size="vast")


SIZE = "spec.template.spec.providerConfig.value.size"

REFUSED: dict[str, tuple[Callable[[], Builder], list[str]]] = {
    "a size that the provider does not have": (bad, [SIZE]),
    "a field that it does not know": (
        lambda: machine("m").provider_config(**FAKE, sise="small"),
        ["spec.providerConfig.value.sise"],
    ),
    "in a class": (lambda: machine_class("c").provider_config(**FAKE, size="vast"), ["providerConfig.size"]),
    "a config without a type": (
        lambda: machine("m").provider_config(apiVersion="fake.dev/v1", kind=""),
        ["spec.providerConfig.value.kind"],
    ),
    "a selector that the template does not match": (
        lambda: machine_set("ms").provider_config(**FAKE).selecting({"other": "label"}),
        ["spec.template.metadata.labels"],
    ),
    "a rollout that could never move": (
        lambda: machine_deployment("md").provider_config(**FAKE).rolling(0, 0),
        ["spec.strategy.rollingUpdate.maxUnavailable"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_field_named(case: str) -> None:
    make, wanted = REFUSED[case]
    response = told(asked(make()))
    assert not response["allowed"]
    assert fields(response) == wanted
    assert all(field in response["status"]["message"] for field in wanted)
    assert response["status"]["reason"] == "Invalid"


def deleting() -> Builder:
    return bad().deleting(5, "f")


ALLOWED: dict[str, Callable[[], dict[str, Any]]] = {
    "what is right": lambda: asked(good()),
    "a delete, whatever the object": lambda: asked(bad(), "DELETE", bad()),
    "any update of what is being deleted": lambda: asked(deleting(), "UPDATE", bad()),
    "taking the finalizer from a faulty object": lambda: asked(bad(), "UPDATE", bad().finalized_by("f")),
    "a label on a faulty object": lambda: asked(bad().labelled(a="b"), "UPDATE", bad()),
    "scaling a faulty object": lambda: asked(bad(), "UPDATE", good(), subResource="scale"),
    "the status of anything": lambda: asked(bad(), "UPDATE", good(), subResource="status"),
    "a name that an older object could have": lambda: asked(
        machine("m" * 100).provider_config(**FAKE), "UPDATE", machine("m" * 100).provider_config(**FAKE)
    ),
    "kinds that are not ours": lambda: asked(
        machine("p"), kind={"group": "", "version": "v1", "kind": "Pod"}, object={"apiVersion": "v1", "kind": "Pod"}
    ),
    "connecting": lambda: asked(bad(), "CONNECT"),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_allowed(case: str) -> None:
    response = told(ALLOWED[case]())
    assert response == {"uid": "r-1", "allowed": True}


def test_a_fault_that_a_change_brings_in_is_refused() -> None:
    response = told(asked(bad(), "UPDATE", good()))
    assert fields(response) == [SIZE]


def test_a_second_fault_is_refused_and_the_old_one_not_repeated() -> None:
    worse = machine_set("ms").provider_config(**FAKE, size="vast", colour="red")
    assert fields(told(asked(worse, "UPDATE", bad()))) == ["spec.template.spec.providerConfig.value.colour"]


def test_a_provider_that_is_not_installed_here_is_a_warning() -> None:
    other = machine("m").provider_config(apiVersion="other.dev/v1", kind="Other")
    response = told(asked(other))
    assert response["allowed"]
    (warning,) = response["warnings"]
    assert warning.startswith("spec.providerConfig.value.apiVersion: no installed provider has the config type other")
    assert len(warning) <= 256


def test_an_old_warning_is_not_repeated() -> None:
    other = machine("m").provider_config(apiVersion="other.dev/v1", kind="Other")
    assert told(asked(other.labelled(a="b"), "UPDATE", other)) == {"uid": "r-1", "allowed": True}


def test_a_secret_is_not_repeated() -> None:
    response = told(asked(machine("m").provider_config(**FAKE, password=12345678)))
    assert "12345678" not in str(response)
    assert fields(response) == ["spec.providerConfig.value.password"]


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"},
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"},
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {"uid": 7}},
    ],
)
def test_what_is_no_review_is_told_apart(body: Any) -> None:
    with pytest.raises(BadReviewError):
        review(body, REGISTRY)


@pytest.mark.parametrize("junk", [None, 7, "x", [], {"spec": []}, {"metadata": 3}, {"spec": {"template": 3}}])
def test_an_object_of_any_shape_is_answered(junk: Any) -> None:
    body = asked(
        good(),
        object={"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineSet", **junk}
        if isinstance(junk, dict)
        else junk,
    )
    assert "allowed" in told(body)


MANY = 30_000
FAULTY: dict[str, Callable[[], Any]] = {
    "labels": lambda: {"metadata": {"labels": {f"b c;{number}": "v v" for number in range(MANY)}}},
    "taints": lambda: {"taints": [{"key": "a b"}] * MANY},
    "one long key": lambda: {"metadata": {"labels": {"x" * 1_000_000: "v"}}},
    "long times": lambda: {"nodeDrainTimeout": "9" * 1_000_000},
}


@pytest.mark.parametrize("spec", FAULTY.values(), ids=FAULTY.keys())
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_an_object_of_many_faults_costs_little_and_its_answer_is_bounded(
    spec: Callable[[], Any], operation: str
) -> None:
    """An answer named each of 80,000 faults, and an update compared each with each."""
    body, old = machine("m-1").provider_config(**FAKE), machine("m-1").provider_config(**FAKE)
    body.spec.update(spec())
    old.spec.update(spec() if operation == "UPDATE" else {})
    assert len(validate(body.build())) <= MOST_FAULTS
    answer = told(asked(body, operation, old))
    assert len(orjson.dumps(answer)) < 200_000
    assert answer["allowed"] is (operation == "UPDATE"), "what was there before refuses no update"
    if operation == "CREATE" and len(fields(answer)) == 100:
        assert "and 900 or more others" in answer["status"]["message"]


def test_a_review_of_more_objects_than_one_has_is_not_read() -> None:
    text = b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": [' + b"{}," * 50_000 + b"{}]}"
    with pytest.raises(BadReviewError, match="more than 20000 objects"):
        review_text(text, REGISTRY)


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {f"k{number}": "v" for number in range(1_001)}},
        {"matchExpressions": [{"key": "a", "operator": "Exists"}] * 1_001},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["v"] * 1_001}]},
    ],
)
def test_a_selector_of_thousands_of_requirements_is_refused(selector: dict[str, Any]) -> None:
    with pytest.raises(SelectorError, match="more than 1000"):
        from_label_selector(selector)

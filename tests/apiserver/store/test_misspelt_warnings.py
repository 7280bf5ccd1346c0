"""A misspelt field of our own kinds, which the server keeps, comes with a warning; kubectl prints it."""

from __future__ import annotations

from typing import Any

import pytest

from nodewright.apiserver.store.shaping import Shapes
from nodewright.apiserver.store.standard_seams import standard_seams
from nodewright.apiserver.values import Resource
from nodewright.crds import load_crds
from tests.builders import machine


def resource_of(kind: str, group: str = "") -> Resource:
    spec = next(crd["spec"] for crd in load_crds() if crd["spec"]["names"]["kind"] == kind)
    named, version = spec["names"], spec["versions"][0]
    return Resource(
        group or spec["group"], version["name"], kind, named["plural"], named["singular"], f"{kind}List",
        namespaced=True, schema=version["schema"]["openAPIV3Schema"], builtin=False,
    )  # fmt: skip


def misspelt() -> dict[str, Any]:
    body = machine("m").build()
    body["spec"].update(verions={"kubelet": "1.34.4"}, labels={"pool": "web"})
    return body


def test_a_misspelt_field_is_kept_and_warned_of_with_the_field_that_is_meant() -> None:
    known, warnings = Shapes(standard_seams()).known(resource_of("Machine"), misspelt(), "Warn")
    assert known["spec"]["verions"] == {"kubelet": "1.34.4"}
    assert warnings == (
        "spec.labels is not a known field; did you mean metadata.labels?",
        "spec.verions is not a known field; did you mean versions?",
    )


@pytest.mark.parametrize("validation", ["Warn", "Strict", ""])
def test_strict_takes_it_too_since_it_may_belong_to_an_older_family(validation: str) -> None:
    assert len(Shapes(standard_seams()).known(resource_of("Machine"), misspelt(), validation)[1]) == 2


def test_who_asks_for_no_validation_gets_no_warning_and_kinds_of_others_get_none() -> None:
    shapes = Shapes(standard_seams())
    assert shapes.known(resource_of("Machine"), misspelt(), "Ignore")[1] == ()
    assert shapes.known(resource_of("Machine", "example.com"), misspelt(), "Warn")[1] == ()

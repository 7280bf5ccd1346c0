"""Whose Node it is, by the record that it carries."""

from __future__ import annotations

import pytest

from api import names
from controllers.kernel.node_policy import claimed_by_another, is_recorded_for, owner_uid
from tests.builders.objects import NodeBuilder, machine, node

M1 = machine("m-1").build()
UID, LABEL = names.NODE_MACHINE_UID_ANNOTATION, names.NODE_OWNED_BY_LABEL


@pytest.mark.parametrize(
    ("found", "uid", "ours", "other"),
    [
        (node("n"), "", False, ""),
        (node("n").annotated(UID, "uid-m-1"), "uid-m-1", True, ""),
        (node("n").labelled({LABEL: "uid-m-1"}), "uid-m-1", True, ""),
        (node("n").annotated(UID, "x"), "x", False, "the Machine with uid x"),
        (node("n").labelled({LABEL: "x"}), "x", False, "the Machine with uid x"),
        (node("n").annotated(UID, "uid-m-1").labelled({LABEL: "x"}), "uid-m-1", False, "the Machine with uid x"),
        (node("n").annotated(UID, "x").labelled({LABEL: "uid-m-1"}), "x", False, "the Machine with uid x"),
        (
            node("n").annotated(UID, "uid-m-1").annotated(names.NODE_MACHINE_ANNOTATION, "default/m-2"),
            "uid-m-1",
            False,
            "Machine default/m-2",
        ),
    ],
    ids=["none", "annotation", "label", "another's", "another's label", "label differs", "annotation differs", "title"],
)
def test_the_annotation_goes_before_the_label_and_a_contradiction_is_nobodys(
    found: NodeBuilder, uid: str, ours: bool, other: str
) -> None:
    body = found.build()
    assert (owner_uid(body), is_recorded_for(body, M1), claimed_by_another(body, M1)) == (uid, ours, other)

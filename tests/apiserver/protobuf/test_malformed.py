"""Whatever the bytes, the answer is an object or a 400."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.apiserver import protobuf
from nodewright.apiserver.values import ApiError
from tests.apiserver.protobuf.encoding import body, field, varint
from tests.examples import usually

STORED = [
    bytes.fromhex(entry["body"])
    for entry in json.loads((Path(__file__).parent / "golden/server-1.36.json").read_text(encoding="utf-8"))
]
SMALL = min(STORED, key=len)


def refusal(content: bytes) -> str:
    with pytest.raises(ApiError) as caught:
        protobuf.decode(content)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    return caught.value.message


def object_or_refusal(content: bytes) -> Any:
    with contextlib.suppress(ApiError):
        return protobuf.decode(content)
    refusal(content)
    return None


NAMESPACE = 'Namespace in version "v1" cannot be handled as a Namespace: '
CASES = {
    "JSON": (b'{"kind":"Namespace"}', "expected prefix [107 56 115 0]"),
    "nothing": (b"", "expected prefix"),
    "no envelope": (b"k8s\x00", "names no apiVersion and kind"),
    "a kind without a version": (b"k8s\x00" + field(1, field(2, "Namespace")), "names no apiVersion and kind"),
    "a torn envelope": (b"k8s\x00\x0a\x09ab", "unrecognized: unexpected EOF"),
    "an envelope of numbers": (b"k8s\x00" + field(1, 5), "wrong wireType for field 1 of the envelope"),
    "a kind of nobody": (body("v1", "Nope", b""), 'no kind "Nope" is registered for version "v1"'),
    "another version": (body("v2", "Namespace", b""), 'no kind "Namespace" is registered for version "v2"'),
    "a compressed object": (body("v1", "Namespace", b"", field(3, "gzip")), 'contentEncoding "gzip"'),
    "another encoding": (body("v1", "Namespace", b"", field(4, "text/xml")), 'contentType "text/xml"'),
    "bad JSON inside": (body("v1", "Namespace", b"{", field(4, "application/json")), "embedded JSON"),
    "JSON that is no object": (body("v1", "Namespace", b"[]", field(4, "application/json")), "is not an object"),
    "a torn object": (body("v1", "Namespace", b"\x0a\x05a"), NAMESPACE + "unexpected EOF"),
    "a torn number": (body("v1", "Namespace", b"\x0a\x80"), NAMESPACE + "unexpected EOF"),
    "a number for a message": (body("v1", "Namespace", field(1, 5)), "wrong wireType = 0 for field core.v1.Namespace"),
    "a text for a number": (body("v1", "Namespace", field(1, field(7, "x"))), "meta.v1.ObjectMeta.generation"),
    "an endless number": (body("v1", "Namespace", b"\x08" + b"\xff" * 11), "integer overflow"),
    "field number 0": (body("v1", "Namespace", b"\x02\x00"), "illegal tag 0"),
    "a group": (body("v1", "Namespace", b"\x0b"), "illegal wireType 3"),
    "a text that is no UTF-8": (body("v1", "Namespace", field(1, field(1, b"\xff"))), "invalid UTF-8"),
    "a time beyond time": (body("v1", "Namespace", field(1, field(8, field(1, 1 << 62)))), "out of range"),
    "too many nanoseconds": (body("v1", "Namespace", field(1, field(8, field(2, 10**9)))), "out of range"),
    "an unknown IntOrString": (
        body("policy/v1", "PodDisruptionBudget", field(2, field(1, field(1, 7)))),
        "IntOrString of unknown type 7",
    ),
    "a short double": (
        body(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, field(4, field(1, field(9, 1)))))
        ),
        "wrong wireType = 0",
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_it_is_refused_with_the_reason(what: str) -> None:
    content, why = CASES[what]
    assert why in refusal(content)


def test_nesting_has_an_end() -> None:
    schema = b""
    for _ in range(3000):
        schema = field(28, schema)
    version = field(4, field(1, schema))
    content = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version)))
    assert "nested more than 100 deep" in refusal(content)


def test_nested_unions_have_an_end() -> None:
    schema = b""
    for _ in range(3000):
        schema = field(30, field(2, schema))
    version = field(4, field(1, schema))
    content = body("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version)))
    assert "nested more than 100 deep" in refusal(content)


def test_a_body_that_ends_too_early_never_escapes_as_another_error() -> None:
    for place in range(len(SMALL)):
        object_or_refusal(SMALL[:place])


@usually(100)
@given(st.sampled_from(STORED), st.integers(0), st.integers(0, 255), st.integers(1, 4))
def test_a_changed_body_never_escapes_as_another_error(content: bytes, place: int, value: int, count: int) -> None:
    changed = bytearray(content)
    for step in range(count):
        changed[4 + (place + step * 7919) % (len(changed) - 4)] = value
    object_or_refusal(bytes(changed))


@usually(100)
@given(st.binary(max_size=200), st.sampled_from(["Namespace", "Pod", "Secret", "Event"]))
def test_random_content_never_escapes_as_another_error(content: bytes, kind: str) -> None:
    object_or_refusal(body("v1", kind, content))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_every_64_bit_integer_survives(number: int) -> None:
    content = body("apps/v1", "ControllerRevision", field(3, number))
    assert protobuf.decode(content)["revision"] == number
    assert len(varint(number)) <= 10

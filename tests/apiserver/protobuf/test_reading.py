"""What the wire says and what becomes of it, field by field."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from nodewright.apiserver import protobuf
from tests.apiserver.protobuf.encoding import body, field, varint


def decoded(api_version: str, kind: str, content: bytes) -> dict[str, Any]:
    found = protobuf.decode(body(api_version, kind, content))
    assert (found.pop("apiVersion"), found.pop("kind")) == (api_version, kind)
    return found


def deployment_spec(content: bytes) -> Any:
    return decoded("apps/v1", "Deployment", field(2, content))["spec"]


def schema_of(content: bytes) -> Any:
    version = field(1, "v1") + field(4, field(1, content))
    crd = decoded("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version)))
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_a_plain_zero_is_left_out_and_a_pointer_to_zero_stays() -> None:
    assert deployment_spec(field(1, 0) + field(5, 0) + field(7, 0)) == {"replicas": 0}


def test_a_later_zero_takes_back_an_earlier_value() -> None:
    assert deployment_spec(field(5, 3) + field(5, 0)) == {}


def test_negative_integers_are_read_as_such() -> None:
    assert decoded("scheduling.k8s.io/v1", "PriorityClass", field(2, -5))["value"] == -5
    assert decoded("v1", "Namespace", field(1, field(7, -(1 << 63))))["metadata"] == {"generation": -(1 << 63)}


def test_a_32_bit_integer_is_cut_as_go_cuts_it() -> None:
    assert deployment_spec(field(1, (1 << 32) + 7)) == {"replicas": 7}


def test_one_message_in_two_pieces_is_put_together() -> None:
    content = field(1, field(1, "a")) + field(1, field(3, "b") + field(11, field(1, "k") + field(2, "v")))
    assert decoded("v1", "Namespace", content)["metadata"] == {"name": "a", "namespace": "b", "labels": {"k": "v"}}


def test_a_map_entry_without_a_value_has_an_empty_one() -> None:
    assert decoded("v1", "ConfigMap", field(2, field(1, "k")) + field(3, field(1, "b"))) == {
        "data": {"k": ""},
        "binaryData": {"b": ""},
    }


def test_bytes_become_base64() -> None:
    assert decoded("v1", "Secret", field(2, field(1, "k") + field(2, b"\x00\xff")))["data"] == {"k": "AP8="}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (field(1, 0) + field(2, 80) + field(3, ""), 80),
        (field(1, 0) + field(2, -1), -1),
        (field(1, 1) + field(2, 0) + field(3, "25%"), "25%"),
        (b"", 0),
    ],
)
def test_an_int_or_string_is_one_of_them(content: bytes, expected: int | str) -> None:
    strategy = field(4, field(2, field(2, content)))
    assert deployment_spec(strategy) == {"strategy": {"rollingUpdate": {"maxSurge": expected}}}


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (-62_135_596_800 + 86_400, "0001-01-02T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ],
)
def test_times_are_utc_and_whole_seconds(seconds: int, expected: str) -> None:
    content = field(1, field(8, field(1, seconds) + field(2, 0)))
    assert decoded("v1", "Namespace", content)["metadata"] == {"creationTimestamp": expected}


def test_a_micro_time_keeps_its_microseconds() -> None:
    content = field(2, field(4, field(1, 1) + field(2, 2_000)))
    assert decoded("coordination.k8s.io/v1", "Lease", content)["spec"] == {"renewTime": "1970-01-01T00:00:01.000002Z"}


def test_no_time_is_no_field() -> None:
    assert decoded("v1", "Namespace", field(1, field(8, b""))) == {"metadata": {}}


def test_quantities_are_their_text() -> None:
    cpu = field(1, field(1, "cpu") + field(2, field(1, "500m")))
    none = field(1, field(1, "pods")) + field(1, field(1, "memory") + field(2, b""))
    hard = decoded("v1", "ResourceQuota", field(2, cpu + none))["spec"]["hard"]
    assert hard == {"cpu": "500m", "pods": "0", "memory": "0"}


def test_managed_fields_hold_json() -> None:
    entry = field(1, "kubectl") + field(7, field(1, '{"f:spec":{}}'))
    metadata = decoded("v1", "Namespace", field(1, field(17, entry)))["metadata"]
    assert metadata["managedFields"] == [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]


def test_lists_of_integers_may_be_packed() -> None:
    packed, loose = field(4, varint(1) + varint(-2)), field(4, 1) + field(4, -2)
    pod = [decoded("v1", "Pod", field(2, field(14, groups)))["spec"] for groups in (packed, loose)]
    assert pod == [{"securityContext": {"supplementalGroups": [1, -2]}}] * 2


def test_embedded_structs_of_go_are_no_level_in_json() -> None:
    source = field(2, field(1, field(1, "name-of-it")) + field(2, 0))
    container = field(1, "c") + field(19, source)
    found = decoded("v1", "Pod", field(2, field(2, container)))["spec"]["containers"][0]["envFrom"]
    assert found == [{"configMapRef": {"name": "name-of-it", "optional": False}}]


def test_extra_values_are_lists_of_texts() -> None:
    extra = field(1, "scopes") + field(2, field(1, "a") + field(1, "b"))
    review = decoded("authorization.k8s.io/v1", "SubjectAccessReview", field(2, field(5, extra)))
    assert review["spec"]["extra"] == {"scopes": ["a", "b"]}


def test_fields_that_nobody_knows_are_skipped() -> None:
    unknown = field(999, "x") + field(998, 1) + varint(997 << 3 | 1) + b"8 bytes." + varint(996 << 3 | 5) + b"four"
    assert decoded("v1", "Namespace", unknown + field(1, field(1, "a") + unknown)) == {"metadata": {"name": "a"}}


def test_delete_options_come_under_the_group_of_what_is_deleted() -> None:
    for version in ("v1", "apps/v1", "cluster.k8s.io/v1alpha1"):
        content = field(1, 0) + field(2, field(1, "u")) + field(4, "Foreground")
        assert decoded(version, "DeleteOptions", content) == {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Foreground",
        }


def test_an_eviction_carries_its_delete_options() -> None:
    content = field(1, field(1, "p") + field(3, "default")) + field(2, field(1, 30) + field(5, "All"))
    assert decoded("policy/v1", "Eviction", content) == {
        "metadata": {"name": "p", "namespace": "default"},
        "deleteOptions": {"gracePeriodSeconds": 30, "dryRun": ["All"]},
    }


def test_json_within_the_envelope_is_taken_as_it_is() -> None:
    inside = b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}}'
    found = protobuf.decode(body("v1", "Namespace", inside, field(4, "application/json")))
    assert found == {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (field(24, field(1, field(5, "string"))), {"items": {"type": "string"}}),
        (field(24, field(2, field(5, "a")) + field(2, field(5, "b"))), {"items": [{"type": "a"}, {"type": "b"}]}),
        (field(30, field(1, 0)), {"additionalProperties": False}),
        (field(30, field(1, 1) + field(2, field(5, "number"))), {"additionalProperties": {"type": "number"}}),
        (field(32, field(1, "k") + field(2, field(2, "p"))), {"dependencies": {"k": ["p"]}}),
        (field(32, field(1, "k") + field(2, field(1, field(5, "a")))), {"dependencies": {"k": {"type": "a"}}}),
        (field(8, field(1, "[1,null]")), {"default": [1, None]}),
        (field(20, field(1, '"a"')) + field(20, field(1, "null")), {"enum": ["a", None]}),
        (varint(9 << 3 | 1) + struct.pack("<d", 1.5), {"maximum": 1.5}),
        (varint(11 << 3 | 1) + struct.pack("<d", 0), {"minimum": 0}),
    ],
)
def test_json_schemas_are_what_they_are_in_json(content: bytes, expected: Any) -> None:
    assert schema_of(content) == expected

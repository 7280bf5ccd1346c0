"""What strangers send, and what is read from it."""

from __future__ import annotations

import pytest

from nodewright.apiserver.app.bodies import decode, decode_patch
from nodewright.apiserver.values import ApiError

JSON, YAML = "application/json", "application/yaml"


@pytest.mark.parametrize("kind", ["", JSON, "application/octet-stream"])
def test_json_is_read_whatever_a_lazy_client_calls_it(kind: str) -> None:
    assert decode(b'{"spec": {"replicas": 3}}', kind).content == {"spec": {"replicas": 3}}


def test_yaml_is_read_with_times_and_numeric_keys_as_text() -> None:
    content = decode(b"when: 2026-01-02T03:04:05Z\nday: 2026-01-02\ndata: {1: one, true: yes}\n", YAML).content
    assert content == {"when": "2026-01-02T03:04:05Z", "day": "2026-01-02", "data": {"1": "one", "true": True}}


MALFORMED = {
    "broken JSON": (b'{"a": ', JSON, "json parse error"),
    "a list": (b"[1]", JSON, "must be an object, not array"),
    "a text": (b'"x"', JSON, "must be an object, not string"),
    "nothing": (b"", JSON, "json parse error"),
    "not a number": (b'{"a": NaN}', JSON, "json parse error"),
    "broken YAML": (b"a: [1", YAML, "error decoding YAML"),
    "an empty YAML document": (b"# nothing\n", YAML, "must be an object, not null"),
    "two YAML documents": (b"a: 1\n---\nb: 2\n", YAML, "error decoding YAML"),
    "a doubled YAML key": (b"a: 1\nb: 2\na: 3\n", YAML, 'line 3: key "a" already set in map'),
    "an alias, the seed of a bomb": (b"a: &x [1]\nb: [*x, *x]\n", YAML, "aliases are not allowed"),
    "a tag that makes objects": (b"a: !!python/object/apply:os.getcwd []\n", YAML, "error decoding YAML"),
    "deep nesting": (b"[" * 100_000, JSON, "json parse error"),
    "nesting that can be read but is too deep": (b'{"a":' * 600 + b"1" + b"}" * 600, JSON, "more than 200 levels deep"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_body_is_refused_if_it_is(case: str) -> None:
    content, kind, message = MALFORMED[case]
    with pytest.raises(ApiError, match=message) as refused:
        decode(content, kind)
    assert refused.value.code == 400


def test_an_unknown_media_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ApiError, match="accepted media types include: application/json, application/yaml") as refused:
        decode(b"<xml/>", "application/xml")
    assert (refused.value.code, refused.value.reason) == (415, "UnsupportedMediaType")


DOUBLED = {
    "none": (b'{"a": 1, "b": {"a": 2}}', ()),
    "none, but text that looks like keys": (b'{"a": "\\"a\\": 1, \\"a\\": 2", "b": 1}', ()),
    "at the top": (b'{"a": 1, "a": 2}', ("a",)),
    "below": (b'{"spec": {"replicas": 1, "replicas" : 2}}', ("spec.replicas",)),
    "in a list": (b'{"list": [{}, {"x": 1, "x": 2}]}', ("list[1].x",)),
}


@pytest.mark.parametrize("where", DOUBLED)
def test_doubled_fields_are_found(where: str) -> None:
    content, expected = DOUBLED[where]
    assert decode(content, JSON).duplicates == expected


PATCHES = {
    "json": ("application/json-patch+json", b'[{"op": "remove", "path": "/a"}]', [{"op": "remove", "path": "/a"}]),
    "merge": ("application/merge-patch+json", b'{"a": null}', {"a": None}),
    "apply": ("application/apply-patch+yaml", b"kind: Machine\n", {"kind": "Machine"}),
}


@pytest.mark.parametrize("kind", PATCHES)
def test_a_patch_is_read_by_its_media_type(kind: str) -> None:
    media_type, content, expected = PATCHES[kind]
    patch_type, body = decode_patch(content, media_type, builtin=False)
    assert (patch_type, body.content) == (kind, expected)


def test_strategic_merge_is_for_built_in_kinds_only() -> None:
    strategic = "application/strategic-merge-patch+json"
    assert decode_patch(b"{}", strategic, builtin=True)[0] == "strategic"
    with pytest.raises(ApiError, match="accepted media types include: application/json-patch") as refused:
        decode_patch(b"{}", strategic, builtin=False)
    assert refused.value.code == 415


def test_a_json_patch_that_is_no_list_is_refused() -> None:
    # kubernetes_asyncio sends a dict as a JSON patch unless it is told otherwise.
    with pytest.raises(ApiError, match="cannot unmarshal object") as refused:
        decode_patch(b'{"spec": {}}', "application/json-patch+json", builtin=False)
    assert refused.value.code == 400

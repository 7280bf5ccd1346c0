"""Manifests are read as kubectl reads them, and every field's place is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.yamltext import NO_ALIASES, NO_MERGE_KEYS
from nodewright.cli.main import run
from nodewright.cli.manifests.documents import Broken, Document, read
from nodewright.cli.manifests.positions import Position, nearest, read_path, write_path


def only(text: str) -> Document:
    (document,) = read(text)
    assert isinstance(document, Document)
    return document


def broken(text: str) -> list[Broken]:
    return [part for part in read(text) if isinstance(part, Broken)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("yes", True),
        ("off", False),
        ("010", 8),
        ("0x1f", 31),
        ("-3", -3),
        ("1e3", 1000.0),
        ("1.32", 1.32),
        ('"1.32"', "1.32"),
        ("~", None),
        ("v1.32.0", "v1.32.0"),
        ("0", 0),
    ],
)
def test_scalars_mean_what_they_mean_to_kubectl(text: str, value: object) -> None:
    data = only(f"a: {text}").data
    assert data == {"a": value}
    assert type(data["a"]) is type(value)


def test_every_field_knows_its_line_also_in_later_documents() -> None:
    first, second = read("a: 1\n---\nspec:\n  taints:\n  - key: x\n    effect: y\n")
    assert isinstance(first, Document)
    assert isinstance(second, Document)
    assert second.positions["spec", "taints", 0, "effect"] == Position(6, 5)


def test_a_missing_field_has_the_place_of_its_nearest_parent() -> None:
    document = only("kind: X\nspec:\n  a: 1\n")
    assert nearest(document.positions, ("spec", "b", "c")) == Position(2, 1)


def test_a_broken_document_does_not_hide_its_neighbours() -> None:
    before, error, after = read("a: 1\n---\nb: [\n---\nc: 3\n")
    assert isinstance(before, Document)
    assert isinstance(error, Broken)
    assert error.position.line in (3, 4)
    assert error.message.startswith("not valid YAML")
    assert isinstance(after, Document)
    assert after.data == {"c": 3}


def test_a_tab_is_named_as_the_culprit() -> None:
    (error,) = broken("a:\n\tb: 1\n")
    assert error.position == Position(2, 1)
    assert "a tab" in error.message


def test_json_may_be_indented_by_tabs() -> None:
    assert only('{\n\t"a": {\n\t\t"b": 1}}').data == {"a": {"b": 1}}


def test_a_key_given_twice_is_an_error_with_both_lines() -> None:
    (error,) = broken("a: 1\nb: 2\na: 3\n")
    assert error.position.line == 3
    assert "line 1" in error.message


BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (BOMB, 1),
        ("a: 1\nb: &b {c: 1}\n", 2),
        ("a: &a [*a]", 1),
        ("x: 1\n---\ny: 1\nz: *gone\n", 4),
        ("x: &a {<<: *a}", 1),
        ("x: &a {<<: [*a]}", 1),
        ("q: 1\nx: &a {y: {<<: *a}}", 2),
    ],
)
def test_anchors_and_aliases_are_refused_with_their_line_and_what_to_do(text: str, line: int) -> None:
    (error,) = [each for each in read(text) if isinstance(each, Broken)]
    assert error.position.line == line
    assert error.message == f"{NO_ALIASES}: `yq 'explode(.)' FILE` does that"


@pytest.mark.parametrize("text", ["a: 1\nx: {<<: {b: 1}}", "a: 1\nx:\n  - <<: []"])
def test_merge_keys_are_refused_too(text: str) -> None:
    (error,) = broken(text)
    assert error.message.startswith(NO_MERGE_KEYS)


@pytest.mark.parametrize("command", [["validate"], ["convert"], ["plan"], ["validate", "-o", "json"]])
def test_the_commands_refuse_them_naming_file_and_line(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "theirs.yaml"
    file.write_text("apiVersion: cluster.k8s.io/v1alpha1\nkind: Machine\nmetadata: &m {name: a}\nspec: *m\n")
    assert run([*command, str(file)]) in (1, 2)
    told = "".join(capsys.readouterr())
    assert "theirs.yaml" in told
    assert "3" in told
    assert NO_ALIASES in told


def test_python_tags_are_text_without_power() -> None:
    (error,) = broken("a: !!python/object/apply:os.system [ls]\nb: !foo bar\n")
    assert "foo" in error.message


def test_separators_inside_text_do_not_cut() -> None:
    assert only("a: |\n  one\n  ---\n  two\n").data == {"a": "one\n---\ntwo\n"}


@pytest.mark.parametrize(
    "path",
    [("spec", "taints", 0, "key"), ("metadata", "labels", "a.b/c"), ("spec",), ("items", 3, "spec", "x-y")],
)
def test_paths_survive_writing_and_reading(path: tuple[str | int, ...]) -> None:
    assert read_path(write_path(path)) == path


@pytest.mark.parametrize("index", ["9" * 5000, "9" * 10, "\u0663"])
def test_what_is_no_index_of_a_list_is_a_key(index: str) -> None:
    assert read_path(f"spec.labels[{index}]") == ("spec", "labels", index)


def test_paths_in_the_api_servers_form_are_read() -> None:
    assert read_path("metadata.labels[a.b/c]") == ("metadata", "labels", "a.b/c")
    assert read_path("spec.taints[0].key") == ("spec", "taints", 0, "key")

"""``spec.addons`` of a Cluster in a file: read in order, bounded to the file's folder, and sent to no API server."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodewright.cli.commands.validate import texts
from nodewright.cli.creation.declared import Declared, declared
from nodewright.cli.exits import CliError
from nodewright.cli.main import run

ADDON = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "net", "namespace": "kube-system"}}
TEXT = yaml.safe_dump(ADDON)
HIDDEN = "hunter2-is-the-password"


def cluster(*addons: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": "prod", "namespace": "default"}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": meta,
        "spec": {"paused": False, "addons": list(addons)},
    }


def holder(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "addons", "namespace": "default"}, **fields}


def read(folder: Path, *objects: dict[str, Any]) -> Declared:
    file = folder / "cluster.yaml"
    file.write_text("---\n".join(yaml.safe_dump(each) for each in objects))
    return declared(texts([str(file)]))


def refusal(folder: Path, *objects: dict[str, Any]) -> str:
    with pytest.raises(CliError) as caught:
        read(folder, *objects)
    return caught.value.message


def test_add_ons_come_in_their_order_from_files_and_objects(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "net.yaml").write_text(f"{TEXT}---\n{TEXT}")
    found = read(
        tmp_path,
        cluster(
            {"name": "network", "file": "sub/net.yaml"},
            {"name": "plain", "configMap": {"name": "addons", "key": "b"}},
            {"name": "private", "secret": {"name": "addons"}},
        ),
        holder("ConfigMap", data={"a": "nothing of it", "b": TEXT}),
        holder("Secret", data={"x": base64.b64encode(TEXT.encode()).decode()}, stringData={"y": TEXT}),
    )
    assert [(each.file, len(each.objects)) for each in found.addons] == [("network", 2), ("plain", 1), ("private", 2)]
    assert {each["metadata"]["name"] for addon in found.addons for each in addon.objects} == {"net"}


def test_the_cluster_that_is_sent_has_none(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(TEXT)
    found = read(tmp_path, cluster({"name": "network", "file": "net.yaml"}))
    assert [each["spec"] for each in found.objects] == [{"paused": False}]


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("/etc/passwd", "is not below"),
        ("../other.yaml", "is not below"),
        ("sub/../../other.yaml", "is not below"),
        ("link.yaml", "is not below"),
        ("loop.yaml", "'loop.yaml'"),
        ("missing.yaml", "is not there"),
        ("folder", "is not there, or no file"),
        ("a\x00b", "can't be read"),
        ("x" * 1000, "spec.addons[0] (network): file"),
    ],
)
def test_a_file_below_no_folder_of_ours_is_refused_with_its_field(tmp_path: Path, named: str, words: str) -> None:
    folder = tmp_path / "here"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "other.yaml").write_text(TEXT)
    (folder / "link.yaml").symlink_to(tmp_path / "other.yaml")
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    message = refusal(folder, cluster({"name": "network", "file": named}))
    assert "Cluster default/prod: spec.addons[0] (network): file" in message
    assert words in message


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"configMap": {"name": "none"}}, "configMap: the files hold no ConfigMap none"),
        ({"configMap": {"name": "addons", "key": "c"}}, "ConfigMap addons has no key c"),
        ({"configMap": {"name": "addons", "key": "empty"}}, "holds no object"),
        ({"secret": {"name": "addons", "key": "odd"}}, "is not base64 of UTF-8 text"),
        ({"secret": {"name": "addons", "key": "text"}}, "is not YAML of objects"),
        ({"secret": {"name": "addons", "key": "kindless"}}, "is not YAML of objects"),
    ],
)
def test_what_an_object_does_not_hold_is_named_and_no_secret_is_quoted(
    tmp_path: Path, source: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refusal(
        tmp_path,
        cluster({"name": "x", **source}),
        holder("ConfigMap", data={"empty": ""}),
        holder("Secret", data={"odd": "%%%"}, stringData={"text": f"a: &{HIDDEN} [", "kindless": f"{HIDDEN}: 1"}),
    )
    assert words in message
    assert "spec.addons[0] (x)" in message
    assert HIDDEN not in message + "".join(capsys.readouterr())


def test_of_two_with_one_name_the_second_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(TEXT)
    one = {"name": "network", "file": "net.yaml"}
    assert "spec.addons[1] (network): is given twice" in refusal(tmp_path, cluster(one, dict(one)))


def test_an_object_of_another_namespace_is_not_taken(tmp_path: Path) -> None:
    other = holder("ConfigMap", data={"a": TEXT})
    other["metadata"]["namespace"] = "other"
    assert "the files hold no ConfigMap" in refusal(
        tmp_path, cluster({"name": "x", "configMap": {"name": "addons"}}), other
    )


@pytest.mark.parametrize(
    ("addon", "field"),
    [
        ({"name": "x"}, "spec.addons[0]"),
        ({"name": "x", "file": "a", "secret": {"name": "b"}}, "spec.addons[0]"),
        ({"file": "a"}, "spec.addons[0].name"),
        ({"name": "x", "file": ["a"]}, "spec.addons[0].file"),
        ({"name": "x", "url": "http://x"}, "spec.addons[0].url"),
    ],
)
def test_one_that_is_shaped_otherwise_is_found_by_validate(
    tmp_path: Path, addon: dict[str, Any], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(cluster(addon)))
    assert run(["validate", str(file)]) == 1
    assert f"{field}:" in capsys.readouterr().out
    with pytest.raises(CliError, match="nothing was done"):
        declared(texts([str(file)]))


def test_a_manifest_on_standard_input_has_no_folder() -> None:
    text = yaml.safe_dump(cluster({"name": "network", "file": "net.yaml"}))
    with pytest.raises(CliError, match="standard input has no folder"):
        declared([("<stdin>", text)])

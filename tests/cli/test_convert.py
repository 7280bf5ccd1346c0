"""``convert``: other fields, comments and foreign documents stay; what can't be converted is named and passed on."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.cli import main as cli
from nodewright.cli.manifests import documents
from nodewright.cli.manifests.documents import Document
from nodewright.cli.manifests.rewriting import rewrite
from tests.api.test_conversion import configs, kinds, obj, values
from tests.examples import usually

KUBERMATIC = """\
# the workers
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata: {name: w}   # in flow style
spec:
  template:
    spec:
      providerSpec:   # a comment
        value:
          cloudProvider: "hetzner"
      versions: {kubelet: "1.30.5"}
---
# not ours
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {providerSpec: stays}
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    def convert(text: str, *options: str) -> tuple[int, str, str]:
        (tmp_path / "in.yaml").write_text(text)
        code = cli.run(["convert", str(tmp_path / "in.yaml"), *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.replace(f"{tmp_path}/", "")

    return convert


def test_only_the_key_changes(run: Run) -> None:
    code, out, err = run(KUBERMATIC)
    assert code == 0
    assert out == KUBERMATIC.replace("providerSpec:   #", "providerConfig:   #")
    assert "1 object converted" in err


def test_and_back_again_it_is_the_same_file(run: Run) -> None:
    _, there, _ = run(KUBERMATIC, "--to", "providerConfig")
    assert run(there, "--to=providerSpec")[1] == KUBERMATIC


def test_a_config_without_a_type_is_remarked_on(run: Run) -> None:
    code, _, err = run(KUBERMATIC)
    assert code == 0
    assert "in.yaml:9: MachineDeployment w: spec.template.spec.providerConfig.value: names no config type" in err
    assert run(KUBERMATIC, "--quiet")[2] == ""


def test_text_is_written_as_an_object(run: Run) -> None:
    code, out, _ = run(
        "apiVersion: cluster.k8s.io/v1alpha1\nkind: Machine\nmetadata: {name: m}\n"
        "spec:\n  providerConfig: |\n    apiVersion: a/v1\n    kind: K\n    size: '12:30'\n"
    )
    assert code == 0
    assert "  providerConfig:\n    value:\n      apiVersion: a/v1\n      kind: K\n      size: '12:30'\n" in out


REQUEST = """\
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: ProvisioningRequest
metadata: {name: r}
spec:
  podSets: []
  provisioningClass: check-capacity.kubernetes.io   # as the proposal has it
  Parameters: {ValidUntilSeconds: "60"}
"""


def test_a_request_that_is_spelt_as_in_its_proposal_gets_the_fields_that_are_served(run: Run) -> None:
    code, out, err = run(REQUEST)
    served = REQUEST.replace("provisioningClass:", "provisioningClassName:").replace("Parameters:", "parameters:")
    assert (code, out) == (0, served)
    assert "1 object converted" in err
    assert run(served)[1:] == (served, "0 objects converted\n")


def test_where_both_spellings_are_there_the_served_one_counts(run: Run) -> None:
    text = REQUEST + '  parameters: {ValidUntilSeconds: "90"}\n'
    assert read(run(text)[1])["spec"]["parameters"] == {"ValidUntilSeconds": "90"}


def test_json_stays_json(run: Run) -> None:
    text = (
        '{"apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine", "metadata": {"name": "m"},\n'
        '\t"spec": {"providerSpec": {"value": {"a": 1}}}}\n'
    )
    assert run(text)[1] == text.replace("providerSpec", "providerConfig")


def test_items_of_a_list_are_converted(run: Run) -> None:
    item = (
        "- apiVersion: cluster.k8s.io/v1alpha1\n  kind: Machine\n  metadata: {name: %s}\n"
        "  spec: {providerSpec: {value: {a: 1}}}\n"
    )
    text = "apiVersion: v1\nkind: List\nitems:\n" + item % "a" + item % "b"
    code, out, err = run(text)
    assert (code, out) == (0, text.replace("providerSpec", "providerConfig"))
    assert "2 objects converted" in err


def test_what_can_not_be_converted_is_named_passed_on_and_keeps_nothing_else_back(run: Run) -> None:
    both = (
        "apiVersion: cluster.k8s.io/v1alpha1\nkind: Machine\nmetadata: {name: both}\n"
        "spec:\n  providerConfig: {value: {a: 1}}\n  providerSpec: {value: {a: 1}}\n"
    )
    broken = "a: [\n"
    code, out, err = run(f"{both}---\n{broken}---\n{KUBERMATIC}")
    assert code == 1
    assert both in out
    assert broken in out
    assert "providerConfig:   # a comment" in out
    assert "in.yaml:6: Machine both: spec.providerSpec: at most one" in err
    assert "in.yaml:8: not valid YAML" in err or "in.yaml:9: not valid YAML" in err


def test_standard_input_and_several_files_are_one_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "b.yaml").write_text("kind: B\napiVersion: v1")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"kind: A\napiVersion: v1")))
    assert cli.run(["convert", "-", str(tmp_path / "b.yaml"), "-q"]) == 0
    assert capsys.readouterr().out == "kind: A\napiVersion: v1\n---\nkind: B\napiVersion: v1"


def test_a_file_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["convert", "/nowhere.yaml"]) == 2
    assert "/nowhere.yaml" in capsys.readouterr().err


def read(text: str) -> Any:
    (document,) = documents.read(text)
    assert isinstance(document, Document), document
    return document.data


@usually(12)
@given(kinds, configs, values)
def test_a_manifest_there_and_back_reads_the_same(kind: str, config: dict[str, Any], unknown: dict[str, Any]) -> None:
    start = obj(kind, providerSpec=config, **{f"x-{name}": value for name, value in unknown.items()})
    text = documents.write(start)
    assert read(text) == start
    there = rewrite("f", text, "providerConfig")
    back = rewrite("f", there.text, "providerSpec")
    assert (there.changed, there.faults, back.changed, back.faults) == (1, (), 1, ())
    assert read(back.text) == start


@usually(12)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=200))
def test_no_text_is_lost_or_breaks_it(text: str) -> None:
    assert rewrite("f", text, "providerConfig").text == text


@pytest.mark.parametrize("to", ["providerConfig", "providerSpec"])
@pytest.mark.parametrize("example", sorted(Path("examples").glob("*.yaml")), ids=lambda path: path.name)
def test_our_examples_stay_valid(example: Path, to: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.run(["convert", str(example), "--to", to]) == 0
    (tmp_path / "converted.yaml").write_text(capsys.readouterr().out)
    assert cli.run(["validate", str(tmp_path / "converted.yaml")]) == 0, capsys.readouterr().out

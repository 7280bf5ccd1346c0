"""``validate`` names every error with its file, line and field, without asking anybody."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nodewright.cli.main import run

GOOD = """\
apiVersion: cluster.k8s.io/v1alpha1
kind: MachineDeployment
metadata:
  name: web
spec:
  replicas: 3
  selector:
    matchLabels:
      pool: web
  strategy:
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        pool: web
    spec:
      versions:
        kubelet: 1.34.0
      providerConfig:
        value:
          apiVersion: simulated.nodewright.dev/v1alpha1
          kind: SimulatedMachineConfig
          cpus: 2
"""


class Checked:
    """What one run of ``validate -o json`` found."""

    def __init__(self, code: int, findings: list[dict[str, object]]) -> None:
        self.code = code
        self.findings = findings

    def at(self, path: str) -> tuple[int, str]:
        """Line and message of the one finding for ``path``."""
        (found,) = [f for f in self.findings if f["path"] == path]
        return int(str(found["line"])), str(found["message"])


Check = Callable[[str], Checked]


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    def checked(text: str) -> Checked:
        file = tmp_path / "manifest.yaml"
        file.write_text(text)
        code = run(["validate", "-o", "json", str(file)])
        return Checked(code, json.loads(capsys.readouterr().out)["findings"])

    return checked


def test_a_good_manifest_passes(check: Check) -> None:
    assert check(GOOD).findings == []
    assert check(GOOD).code == 0


def test_the_examples_that_come_with_the_program_are_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "nodewright/cli/examples"]) == 0
    assert "no error found" in capsys.readouterr().err


_BOOT = "spec.template.spec.bootstrap"


def _bootstrap(text: str) -> str:
    """The line of the versions, and ``spec.bootstrap`` in the line before it."""
    return f"bootstrap: {{{text}}}\n      versions:"


@pytest.mark.parametrize(
    ("old", "new", "path", "line", "says"),
    [
        ("replicas: 3", "replicas: -1", "spec.replicas", 6, "greater than or equal to 0"),
        ("replicas: 3", 'replicas: "three"', "spec.replicas", 6, "integer"),
        ("replicas: 3", "replica: 3", "spec.replica", 6, "did you mean replicas?"),
        ("maxSurge: 1", "maxSurge: 0", "spec.strategy.rollingUpdate.maxUnavailable", 13, "maxSurge is 0"),
        ("        pool: web", "        pool: wob", "spec.template.metadata.labels", 16, "selector"),
        ("kubelet: 1.34.0", "kubelet: new", "spec.template.spec.versions.kubelet", 20, "new"),
        ("cpus: 2", "cpus: two", "spec.template.spec.providerConfig.value.cpus", 25, "whole number"),
        ("cpus: 2", "cpu: 2", "spec.template.spec.providerConfig.value.cpu", 25, "cpus"),
        ("kind: SimulatedMachineConfig", "kind: Other", "spec.template.spec.providerConfig.value.kind", 24, "known"),
        ("simulated.nodewright.dev", "acme.dev", "spec.template.spec.providerConfig.value.apiVersion", 23, "acme.dev"),
        ("name: web", f"name: {'x' * 64}", "metadata.name", 4, "at most 39"),
        ("name: web", "name: Web_1", "metadata.name", 4, "DNS"),
        ("kind: MachineDeployment", "kind: MachineDeploiment", "kind", 2, "did you mean MachineDeployment?"),
        ("cluster.k8s.io/v1alpha1", "cluster.k8s.io/v1beta9", "apiVersion", 1, "cluster.k8s.io/v1alpha1"),
        ("cluster.k8s.io/v1alpha1", "cluster.x-k8s.io/v1beta1", "apiVersion", 1, "Cluster API's group"),
        ("versions:", _bootstrap("swap: Never"), f"{_BOOT}.swap", 19, "Disable"),
        ("versions:", _bootstrap("sysctl: {}"), f"{_BOOT}.sysctl", 19, "did you mean sysctls?"),
        ("versions:", _bootstrap("kubeletConfiguration: {maxPod: 5}"), f"{_BOOT}.kubeletConfiguration.maxPod", 19,
         "maxPods is meant?"),
        ("versions:", _bootstrap("packages: {repository: {url: 'https://a/', signingKey: x}}"),
         f"{_BOOT}.packages.repository.signingKey", 19, "PGP PUBLIC KEY"),
        ("versions:", _bootstrap("files: [{path: /etc/nodewright/x, content: ''}]"), f"{_BOOT}.files[0].path", 19,
         "written by"),
        ("versions:", "version:", "spec.template.spec.version", 19, "did you mean versions?"),
    ],
)  # fmt: skip
def test_each_fault_is_named_with_its_field_and_line(
    check: Check, old: str, new: str, path: str, line: int, says: str
) -> None:
    assert old in GOOD
    found = check(GOOD.replace(old, new, 1))
    assert found.code == 1
    at, message = found.at(path)
    assert at == line
    assert says in message


def test_all_faults_of_all_documents_are_reported_in_one_go(check: Check) -> None:
    worse = GOOD.replace("replicas: 3", "replicas: -1").replace("cpus: 2", "cpus: 0")
    found = check(f"{worse}---\na: [\n---\n{worse.replace('name: web', 'name: other')}")
    assert len(found.findings) == 5
    assert [f["line"] for f in found.findings] == sorted(int(str(f["line"])) for f in found.findings)


def test_an_object_given_twice_names_both_places(check: Check) -> None:
    line, message = check(f"{GOOD}---\n{GOOD}").at("metadata.name")
    assert line == 30
    assert ":1)" in message


def test_items_of_a_list_are_checked_where_they_stand(check: Check) -> None:
    item = "".join(f"  {line}\n" for line in GOOD.replace("replicas: 3", "replicas: -1").splitlines())
    found = check(f"apiVersion: v1\nkind: List\nitems:\n- {item.lstrip()}")
    assert found.at("spec.replicas")[0] == 9


@pytest.mark.parametrize("text", ["just text", "- a\n- b\n", "42\n", "apiVersion: v1\n", "kind: Machine\n"])
def test_what_is_no_object_is_said_to_be_none(check: Check, text: str) -> None:
    found = check(text)
    assert found.code == 1
    assert all(f["message"] for f in found.findings)


def test_kinds_of_others_pass_with_only_their_frame_checked(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    assert check("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: x\n").code == 0
    assert check("apiVersion: v1\nkind: Namespace\n").at("metadata.name")[0] == 1


@pytest.mark.parametrize("config", ["", "      providerConfig: {}\n", "      providerSpec:\n"])
def test_a_template_that_no_provider_could_make_a_host_of_is_named(check: Check, config: str) -> None:
    found = check(GOOD[: GOOD.index("      providerConfig:")] + config)
    assert found.code == 1
    _, message = found.at("spec.template.spec.providerConfig")
    assert message.startswith("is required")


def test_the_config_of_a_machine_class_is_checked_too(check: Check) -> None:
    found = check(
        "apiVersion: cluster.k8s.io/v1alpha1\nkind: MachineClass\nmetadata:\n  name: c\nproviderConfig:\n"
        "  apiVersion: simulated.nodewright.dev/v1alpha1\n  kind: SimulatedMachineConfig\n  cpus: none\n"
    )
    assert found.at("providerConfig.cpus")[0] == 8


def test_text_output_can_be_jumped_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(GOOD.replace("replicas: 3", "replicas: -1"))
    assert run(["validate", str(file)]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{file}:6: MachineDeployment web: spec.replicas: ")
    assert shown.err == "1 object checked, 1 error found\n"


def test_a_file_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "/no/such/file.yaml"]) == 2
    assert "/no/such/file.yaml: No such file or directory" in capsys.readouterr().err


def test_files_may_be_named_as_for_kubectl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, wrong = tmp_path / "good.yaml", tmp_path / "wrong.yaml"
    good.write_text(GOOD)
    wrong.write_text(GOOD.replace("name: web", "name: other").replace("replicas: 3", "replicas: -1"))
    assert run(["validate", "-f", str(good)]) == 0
    assert run(["validate", str(good), "-f", str(wrong)]) == 1
    assert "2 objects checked" in capsys.readouterr().err
    assert run(["validate"]) == 2
    assert "no file is named" in capsys.readouterr().err
    assert run(["convert", "-q", "-f", str(good)]) == 0
    assert capsys.readouterr().out == GOOD
    assert run(["convert"]) == 2
    assert run(["plan", "-f", str(good)]) == 0


def test_an_empty_folder_is_a_usage_error(tmp_path: Path) -> None:
    assert run(["validate", str(tmp_path)]) == 2


def test_a_file_that_is_no_text_is_named_with_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    assert run(["validate", str(file)]) == 1
    assert f"{file}:2: not UTF-8" in capsys.readouterr().err


def test_a_provisioning_request_is_checked_though_its_group_is_not_ours(check: Check) -> None:
    good = Path(__file__).parents[2] / "examples" / "provisioning-request.yaml"
    assert check(good.read_text()).findings == []
    line, message = check(good.read_text().replace("count: 4", "count: 20000")).at("spec.podSets[0].count")
    assert line == good.read_text().splitlines().index("      count: 4") + 1
    assert "16384" in message

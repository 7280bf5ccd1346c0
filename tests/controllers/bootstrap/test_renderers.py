"""The renderers: what they write is what the programs that read it take, whatever the input is."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.bootstrap import cloud_config, documents, ignition, shell
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.steps import Binary, Command, File, Files, Step, Steps
from hack import binaries
from providers.base.contract import Taint
from tests.controllers.bootstrap.scenarios import SCENARIOS
from tests.controllers.bootstrap.test_join import JOIN, steps_of

GOLDEN = Path(__file__).parent / "golden"


def script_of(user_data: bytes) -> str:
    """The script inside of a cloud-config."""
    head, _, body = user_data.partition(b"\n")
    assert head == b"#cloud-config"
    file = json.loads(body)["write_files"][0]
    return gzip.decompress(b64decode(file["content"])).decode()


def test_the_same_steps_give_the_same_bytes() -> None:
    assert cloud_config.render(steps_of(JOIN)) == cloud_config.render(steps_of(JOIN))


def test_a_cloud_config_carries_the_script_as_it_is() -> None:
    assert script_of(cloud_config.render(steps_of(JOIN))) == shell.render(steps_of(JOIN))


@pytest.mark.parametrize(("scenario", "limit"), [("worker", 12), ("packages", 24), ("archives", 24)])
def test_user_data_of_a_scenario_is_small(scenario: str, limit: int) -> None:
    """A worker fits EC2's 16 KiB, the least of the usual clouds. A script holds only the functions that it calls."""
    assert len(cloud_config.render(steps_of(SCENARIOS[scenario]))) < limit * 1024


def test_the_token_is_not_in_clear_in_user_data_and_on_no_command_line() -> None:
    text = shell.render(steps_of(JOIN))
    assert JOIN.token not in text
    assert JOIN.token.encode() not in cloud_config.render(steps_of(JOIN))


def without_the_script(document: dict[str, Any]) -> str:
    """gzip's bytes depend on the library: they are compared unpacked, elsewhere."""
    if "write_files" in document:
        document["write_files"][0]["content"] = "the script"
    else:
        document["storage"]["files"][0]["contents"]["source"] = "the script"
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


@pytest.mark.parametrize("renderer", ["shell", "cloud_config", "ignition"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_rendered_text_is_the_golden_one(scenario: str, renderer: str) -> None:
    """A change of these bytes makes new hosts differ from old ones: look at it before you write it anew, with
    ``NODEWRIGHT_WRITE_GOLDEN=1 pytest …``."""
    steps = steps_of(SCENARIOS[scenario])
    rendered = {
        "shell": lambda: shell.render(steps),
        "cloud_config": lambda: without_the_script(json.loads(cloud_config.render(steps).partition(b"\n")[2])),
        "ignition": lambda: without_the_script(json.loads(ignition.render(steps))),
    }[renderer]()
    golden = GOLDEN / f"{scenario}.{renderer}"
    if os.environ.get("NODEWRIGHT_WRITE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()


def test_ignition_carries_the_script_as_it_is() -> None:
    document = json.loads(ignition.render(steps_of(JOIN)))
    (file,), (unit,) = document["storage"]["files"], document["systemd"]["units"]
    head, _, content = file["contents"]["source"].partition(",")
    assert (head, file["contents"]["compression"], file["mode"]) == ("data:;base64", "gzip", 0o600)
    assert gzip.decompress(b64decode(content)).decode() == shell.render(steps_of(JOIN))
    assert f"ExecStart=/bin/sh {file['path']}" in unit["contents"]
    assert unit["enabled"]


texts = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=30)


@given(words=st.lists(texts.filter(bool), min_size=1, max_size=4), name=texts, content=texts)
@settings(max_examples=20, deadline=None)
def test_no_text_of_a_step_becomes_shell(words: list[str], name: str, content: str) -> None:
    """Whatever stands in a command, a name or a file arrives as it is, and nothing else runs."""
    steps = Steps((Step(name, Files((File("/x", content),))), Step(name, Command(("echo", *words)))))
    text = shell.render(steps)
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False, capture_output=True).returncode == 0
    line = next(line for line in text.split("\n") if line.strip().startswith("limited 300 echo"))
    assert shlex.split(line) == ["limited", "300", "echo", *words]


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script whose state lies in ``folder``."""
    text = script.replace(shell.STATE, str(folder)).replace('mkdir -p "$state" /etc/nodewright', 'mkdir -p "$state"')
    return subprocess.run(["sh"], input=text, text=True, check=False, capture_output=True, timeout=300)


def test_a_step_that_fails_ends_the_script_and_says_which_and_why(tmp_path: Path) -> None:
    steps = Steps(
        (
            Step("first", Command(("true",))),
            Step("second 'one'", Command(("sh", "-c", "echo no disk; exit 7"))),
            Step("third", Command(("touch", str(tmp_path / "third")))),
        )
    )
    done = run(shell.render(steps), tmp_path)
    assert done.returncode == 7
    assert "2/3 second 'one' failed with 7:\nno disk" in done.stdout
    assert not (tmp_path / "third").exists()
    assert '"code": 7' in (tmp_path / "result").read_text()


def test_a_step_that_is_done_is_passed_over_when_the_script_runs_again(tmp_path: Path) -> None:
    counter, mark = tmp_path / "runs", tmp_path / "done"
    count = Command(("sh", "-c", f"echo once >> {counter}; touch {mark}"))
    steps = Steps((Step("count", count, (str(mark),)),))
    for _ in range(3):
        assert run(shell.render(steps), tmp_path).returncode == 0
    assert counter.read_text() == "once\n"


def test_secret_files_are_removed_once_all_is_done(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    steps = Steps((Step("write", Files((File(str(secret), "x", 0o600, secret=True),))),), (str(secret),))
    assert run(shell.render(steps), tmp_path).returncode == 0
    assert not secret.exists()


def test_files_arrive_byte_for_byte_with_their_mode(tmp_path: Path) -> None:
    target = tmp_path / "a b'c" / "file"
    content = "line\n$HOME `id` \\ 'x' \"y\" {{ z }}\n\x00é"
    assert (
        run(shell.render(Steps((Step("write", Files((File(str(target), content, 0o640),))),))), tmp_path).returncode
        == 0
    )
    assert target.read_text() == content
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_wrong_checksum_is_refused_and_nothing_is_installed(tmp_path: Path) -> None:
    source, target = tmp_path / "program", tmp_path / "installed"
    source.write_text("#!/bin/sh\necho v1.2.3\n")
    binary = Binary(str(target), f"file://{source}", "1.2.3", f"{target} --version", "0" * 64)
    done = run(shell.render(Steps((Step("install", binary),))), tmp_path)
    assert done.returncode != 0
    assert "is not what its checksum says" in done.stdout
    assert not target.exists()
    assert not Path(f"{target}.new").exists()


KUBEADM = binaries.find("kubeadm")
values = st.sampled_from(["", "1e5", "y", "a"])
labels = st.dictionaries(st.from_regex(r"[a-z]{1,5}\.io/[a-z]{1,5}", fullmatch=True), values)
effects = st.sampled_from(["NoSchedule", "NoExecute"])
taints = st.lists(
    st.builds(Taint, st.sampled_from(["a", "b.c/d"]), effects, values),
    max_size=2,
    unique_by=lambda taint: (taint.key, taint.effect),
).map(tuple)


@pytest.mark.skipif(KUBEADM is None, reason=f"kubeadm not found: {binaries.REMEDY}")
@given(labels=labels, taints=taints, token=st.from_regex(r"[a-z0-9]{6}\.[a-z0-9]{16}", fullmatch=True))
@settings(max_examples=20, deadline=None)
def test_kubeadm_itself_takes_every_join_configuration(
    tmp_path_factory: Any, labels: Any, taints: Any, token: str
) -> None:
    join = replace(JOIN, labels=labels, taints=taints, token=token)
    assert isinstance(join_steps(join), Steps)
    folder = tmp_path_factory.mktemp("join")
    file, discovery = folder / "join.json", folder / "discovery.json"
    discovery.touch()  # kubeadm looks whether it is there
    text = json.dumps(documents.join_configuration(join))
    file.write_text(text.replace(documents.DISCOVERY, str(discovery)))
    command = [str(KUBEADM), "config", "validate", "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""cloud-init itself judges what is rendered for it: its schema, and the program of the lab's Debian tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft4Validator

from controllers.bootstrap import cloud_config, ignition, shell
from controllers.bootstrap.join import Install, Join
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.steps import Steps
from hack.hosts import tree
from providers.base.contract import Taint
from tests.controllers.bootstrap.test_join import JOIN, steps_of

TREE = tree.find()
SCHEMA = "usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json"
needs_tree = pytest.mark.skipif(TREE is None, reason="no tree of the lab: run `make lab`")

words = st.text(max_size=20)
versions = st.sampled_from(["1.36.3", "1.31.0", "1.37.0-rc.1", "1.35.4+k3s1"])
joins = st.builds(
    Join,
    kubelet_version=versions,
    server=st.sampled_from(["https://10.0.0.1:6443", "https://[2001:db8::1]:6443", "https://api.example.com"]),
    ca=st.just(JOIN.ca),
    token=st.from_regex(r"[a-z0-9]{6}\.[a-z0-9]{16}", fullmatch=True),
    node_name=st.sampled_from(["", "worker-1", "1e5", "y", "a.b"]),
    container_runtime=st.sampled_from(["", "containerd", "containerd/1.7", "containerd/2.0.0"]),
    labels=st.dictionaries(st.from_regex(r"[a-z]{1,5}\.io/[a-z]{1,5}", fullmatch=True), st.sampled_from(["", "1e5"])),
    taints=st.lists(st.builds(Taint, st.sampled_from("abc"), st.just("NoSchedule"), st.just("y")), max_size=1).map(
        tuple
    ),
    install=st.sampled_from([Install(), Install("https://mirror.example/k8s"), Install("file:///mnt")]),
    ignore_preflight_errors=st.lists(words, max_size=3).map(tuple),
)


@cache
def schema() -> dict[str, Any]:
    assert TREE is not None
    found: dict[str, Any] = json.loads((TREE / SCHEMA).read_text())
    return found


def known_keys() -> set[str]:
    """cloud-init passes over top-level keys that it does not know, with a warning at most; to us they are errors."""
    return {key for module in schema()["$defs"].values() for key in module.get("properties", {})}


def problems(user_data: bytes) -> list[str]:
    head, _, body = user_data.partition(b"\n")
    document = json.loads(body)
    found = [error.message for error in Draft4Validator(schema()).iter_errors(document)]
    found += [f"{key} is unknown" for key in set(document) - known_keys()]
    return found if head == b"#cloud-config" else [*found, f"begins with {head[:40]!r}"]


@needs_tree
@given(joins)
@settings(max_examples=50, deadline=None)
def test_every_join_renders_to_what_cloud_inits_schema_takes_or_is_refused(join: Join) -> None:
    steps = join_steps(join)
    if isinstance(steps, Steps):
        assert problems(cloud_config.render(steps)) == []
    else:
        assert all(each.field and each.message for each in steps)


@needs_tree
@pytest.mark.parametrize(
    "document", [{"write_file": []}, {"write_files": [{"path": "/x", "contents": ""}]}, {"runcmd": 1}]
)
def test_the_schema_sees_what_is_wrong(document: dict[str, Any]) -> None:
    assert problems(b"#cloud-config\n" + json.dumps(document).encode())


@needs_tree
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its root folder")
@pytest.mark.parametrize(("spoil", "valid"), [(False, True), (True, False)])
def test_cloud_init_itself_takes_what_is_rendered(spoil: bool, valid: bool) -> None:
    data = cloud_config.render(steps_of(JOIN))
    data = data.replace(b'"permissions"', b'"permission"') if spoil else data
    inside = "cat > /tmp/user-data; LC_ALL=C.UTF-8 cloud-init schema --config-file /tmp/user-data"
    script = 'mount -t tmpfs tmpfs "$1/tmp" && exec chroot "$1" sh -c "$2"'  # the tree is shared: nothing is left in it
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(TREE), inside]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert (done.returncode == 0) == valid, (done.stdout + done.stderr).decode()


@given(joins)
@settings(max_examples=30, deadline=None)
def test_rendering_is_the_same_for_the_same_join_in_whatever_order_it_was_made(join: Join) -> None:
    first, again = join_steps(join), join_steps(replace(join, labels=dict(reversed(list(join.labels.items())))))
    assert first == again
    if isinstance(first, Steps) and isinstance(again, Steps):
        for render in (cloud_config.render, ignition.render, lambda steps: shell.render(steps).encode()):
            assert render(first) == render(again)


def test_rendering_is_the_same_in_another_process() -> None:
    program = (
        "import sys; from controllers.bootstrap import cloud_config, ignition;"
        "from tests.controllers.bootstrap.test_join import JOIN, steps_of;"
        "sys.stdout.buffer.write(cloud_config.render(steps_of(JOIN)) + ignition.render(steps_of(JOIN)))"
    )
    root = Path(__file__).parents[3]
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert texts == {cloud_config.render(steps_of(JOIN)) + ignition.render(steps_of(JOIN))}

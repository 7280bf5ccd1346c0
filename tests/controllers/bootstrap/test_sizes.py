"""Bootstrap data that can't fit is refused when its spec is admitted, and before a host is made."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.bootstrap import cloud_config, sizes
from controllers.bootstrap.join import Refusal
from controllers.bootstrap.steps import File, Files, Step, Steps
from nodewright.cli.main import run
from nodewright.gateways.admission.review import review
from providers.base.contract import ConfigKind, Registration
from providers.base.registry import Registry
from providers.base.user_data import CLOUDS, Fitted, UserDataLimit
from tests.controllers.bootstrap.test_join import JOIN, steps_of

CONFIG = {"apiVersion": "openstack.nodewright.dev/v1alpha1", "kind": "OpenStackMachineConfig"}
VALID = {**CONFIG, "cloud": {"secretName": "c"}, "flavor": "f", "image": "i", "ports": [{"network": "n"}]}


def noise(size: int, seed: int = 1) -> str:
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()[:size]


def registration(limit: UserDataLimit | None, own: bool = False) -> Registration:
    def never(*_: Any) -> Any:
        raise AssertionError("nobody opens it")

    kinds = (ConfigKind("fake.dev/v1", "Fake", {"type": "object"}),)
    return Registration("fake", kinds, never, never, user_data_limit=limit, brings_user_data=lambda _config: own)


def machine(bootstrap: Any) -> dict[str, Any]:
    return {"kind": "Machine", "spec": {"bootstrap": bootstrap}}


def files(*contents: str) -> dict[str, Any]:
    return {"files": [{"path": f"/f{n}", "content": text} for n, text in enumerate(contents)]}


@pytest.mark.parametrize("limit", CLOUDS.values(), ids=list(CLOUDS))
def test_a_worker_fits_every_cloud_but_those_that_take_next_to_nothing(limit: UserDataLimit) -> None:
    found = sizes.fit(cloud_config.render(steps_of(JOIN)), limit)
    assert isinstance(found, Fitted) == (limit.size > 8 * 1024)
    if isinstance(found, Refusal):
        assert found.field == "spec.bootstrap"
        assert "takes 2048" in found.message


LIMIT = UserDataLimit("Test", 16 * 1024)
LARGE, SAME = noise(40_000), "the same line\n" * 4000
BINARY = base64.b64encode(random.Random(2).randbytes(24_000)).decode()
CASES: dict[str, tuple[Any, bool]] = {
    "nothing": (None, False),
    "no object": ("x", False),
    "small": (files("x" * 200), False),
    "large, and packed to little": (files(SAME), False),
    "large": (files(LARGE), True),
    "each small": (files(*(noise(2000, seed) for seed in range(20))), True),
    "binary": ({"files": [{"content": BINARY, "encoding": "base64"}]}, True),
    "a script": ({"preJoinCommands": [{"script": LARGE}]}, True),
    "a field that nobody knows yet": ({"new": {"deep": [{"er": LARGE}]}}, True),
    "broken base64": ({"files": [{"content": "%" + LARGE, "encoding": "base64"}]}, True),
    "junk": ({"files": [None, 1, True, {"content": 7, "encoding": "base64"}, ["x"]]}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_spec_is_refused_if_what_it_holds_is_too_large_for_its_cloud(case: str) -> None:
    bootstrap, refused = CASES[case]
    for kind, path in (("Machine", "spec"), ("MachineSet", "spec.template.spec"), ("MachineDeployment", None)):
        spec: dict[str, Any] = {"bootstrap": bootstrap}
        obj = {"kind": kind, "spec": spec if kind == "Machine" else {"template": {"spec": spec}}}
        found = list(sizes.faults(obj, {}, registration(LIMIT)))
        assert bool(found) == refused
        assert not found or found[0].path == f"{path or 'spec.template.spec'}.bootstrap"
        assert list(sizes.faults(obj, {}, registration(None))) == []
        assert list(sizes.faults(obj, {}, registration(LIMIT, own=True))) == [], "it gets none of ours"
    assert list(sizes.faults({"kind": "MachineClass", "spec": {"bootstrap": bootstrap}}, {}, registration(LIMIT))) == []


@given(st.lists(st.tuples(st.integers(0, 12_000), st.booleans()), max_size=6), st.sampled_from(list(CLOUDS.values())))
@settings(max_examples=60, deadline=None)
def test_what_is_refused_at_admission_would_not_have_fit(parts: list[tuple[int, bool]], limit: UserDataLimit) -> None:
    contents = [noise(size, size) if random_ else "a" * size for size, random_ in parts]
    refused = list(sizes.faults(machine(files(*contents)), {}, registration(limit)))
    steps = steps_of(JOIN)
    extra = Step("write files", Files(tuple(File(f"/f{n}", text) for n, text in enumerate(contents))))
    whole = sizes.fit(cloud_config.render(Steps((*steps.steps, extra), steps.forget)), limit)
    if refused:
        assert isinstance(whole, Refusal)


def test_the_webhook_refuses_it_with_its_field() -> None:
    obj = {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default"},
        "spec": {
            "versions": {"kubelet": "1.36.3"},
            "providerConfig": {"value": {"apiVersion": "fake.dev/v1", "kind": "Fake"}},
            "bootstrap": files(noise(30_000, 3)),
        },
    }
    kind = {"group": "cluster.k8s.io", "version": "v1alpha1", "kind": "Machine"}
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "r", "kind": kind, "operation": "CREATE", "object": obj},
    }
    answer = review(body, Registry.of(registration(LIMIT)))["response"]
    (cause,) = answer["status"]["details"]["causes"]
    assert cause["field"] == "spec.bootstrap"
    assert "Test takes 16384" in cause["message"]
    assert noise(30_000, 3)[:40] not in json.dumps(answer)
    assert review(body, Registry.of(registration(None)))["response"]["allowed"]


@pytest.mark.parametrize(("own", "size", "code"), [(False, 10_700, 1), (False, 5_000, 0), (True, 10_700, 0)])
def test_validate_refuses_it_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own: bool, size: int, code: int
) -> None:
    config = {**VALID, **({"userData": {"secretName": "s"}} if own else {})}
    obj = {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "m"},
        "spec": {
            "versions": {"kubelet": "1.36.3"},
            "providerConfig": {"value": config},
            "bootstrap": files(*(noise(size, seed) for seed in range(6))),
        },
    }
    (tmp_path / "m.json").write_text(json.dumps(obj))
    assert run(["validate", str(tmp_path / "m.json")]) == code
    said = capsys.readouterr().out
    assert ("spec.bootstrap: its files, scripts and keys alone make it too large" in said) == bool(code)
    assert ("Nova takes 65535" in said) == bool(code)

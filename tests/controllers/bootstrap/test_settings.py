"""What counts for a host of the ``spec.bootstrap`` of its Cluster and its Machine, and what is refused of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import limits
from controllers.bootstrap.join import refusals
from controllers.bootstrap.settings import Settings, effective, is_asked_for, problems
from tests.controllers.bootstrap.test_join import JOIN

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQINBA==\n-----END PGP PUBLIC KEY BLOCK-----\n"
REPOSITORY = {"url": "https://packages.example/v{minor}/{format}/", "signingKey": KEY}
ARCHIVES = {"kubernetes": {"mirror": "https://mirror.example"}}


def of(machine: Any, cluster: Any = None) -> Settings:
    return effective({"bootstrap": cluster} if cluster is not None else {}, {"bootstrap": machine})


def test_maps_merge_by_key_and_lists_replace() -> None:
    cluster = {
        "sysctls": {"vm.max_map_count": "1", "net.core.somaxconn": "2"},
        "kernelModules": ["a", "b"],
        "kubeletConfiguration": {"maxPods": 50, "evictionHard": {"memory.available": "1Gi", "nodefs.available": "5%"}},
    }
    machine = {
        "sysctls": {"net.core.somaxconn": "3"},
        "kernelModules": ["c"],
        "kubeletConfiguration": {"evictionHard": {"memory.available": "2Gi"}},
        "swap": None,
    }
    found = of(machine, cluster)
    assert found.faults == ()
    assert found.spec.sysctls == {"vm.max_map_count": "1", "net.core.somaxconn": "3"}
    assert found.spec.kernel_modules == ["c"]
    assert found.spec.kubelet_configuration == {
        "maxPods": 50,
        "evictionHard": {"memory.available": "2Gi", "nodefs.available": "5%"},
    }


def test_a_repository_replaces_as_a_whole() -> None:
    """Else the suite of one repository would be looked for in the other."""
    cluster = {"packages": {"repository": {**REPOSITORY, "suite": "stable", "components": ["main"]}}}
    found = of({"packages": {"repository": REPOSITORY}}, cluster)
    assert found.faults == ()
    assert found.spec.packages is not None
    assert found.spec.packages.repository is not None
    assert found.spec.packages.repository.suite is None


@pytest.mark.parametrize(
    ("cluster", "machine", "source"),
    [
        ({}, {}, "Image"),
        ({"packages": {"extra": ["jq"]}}, {}, "Packages"),
        ({"packages": {"extra": ["jq"]}}, {"archives": ARCHIVES}, "Archives"),
        ({"packages": {"extra": ["jq"]}}, {"source": "Image"}, "Image"),
        ({"source": "Packages"}, {"sysctls": {"a.b": "1"}}, "Packages"),
        ({"archives": ARCHIVES, "packages": {"extra": ["jq"]}, "source": "Packages"}, {}, "Packages"),
    ],
)
def test_the_source_is_what_the_nearest_object_says_or_gives(cluster: Any, machine: Any, source: str) -> None:
    found = of(machine, cluster)
    assert (found.source, found.faults) == (source, ())


def test_ranges_of_the_cluster_get_no_proxy() -> None:
    network = {"pods": {"cidrBlocks": ["10.244.0.0/16"]}, "serviceDomain": "corp.local"}
    found = effective({"clusterNetwork": network}, {})
    assert {"10.244.0.0/16", ".corp.local", ".svc", "169.254.169.254"} <= set(found.no_proxy)


def one(**fields: Any) -> dict[str, Any]:
    return {"bootstrap": fields}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no object": ({"bootstrap": [1]}, ""),
    "two sources": (one(packages={"extra": ["a"]}, archives=ARCHIVES), ".source"),
    "an unknown source": (one(source="Tape"), ".source"),
    "credentials in a URL": (
        one(packages={"repository": {**REPOSITORY, "url": "https://me:secret@x/"}}),
        ".packages.repository.url",
    ),
    "a URL with a line break": (
        one(packages={"repository": {**REPOSITORY, "url": "https://x/\ndeb evil"}}),
        ".packages.repository.url",
    ),
    "an unknown placeholder": (
        one(packages={"repository": {**REPOSITORY, "url": "https://x/{patch}"}}),
        ".packages.repository.url",
    ),
    "an open brace": (one(packages={"repository": {**REPOSITORY, "url": "https://x/{"}}), ".packages.repository.url"),
    "a private key to sign": (
        one(packages={"repository": {**REPOSITORY, "signingKey": KEY.replace("PUBLIC", "PRIVATE")}}),
        ".packages.repository.signingKey",
    ),
    "no key": (one(packages={"runtimeRepository": {"url": "https://x/"}}), ".packages.runtimeRepository.signingKey"),
    "components of a flat repository": (
        one(packages={"repository": {**REPOSITORY, "components": ["main"]}}),
        ".packages.repository.components",
    ),
    "no components": (
        one(packages={"repository": {**REPOSITORY, "suite": "stable"}}),
        ".packages.repository.components",
    ),
    "a mirror that anyone may change": (
        one(archives={"kubernetes": {"mirror": "http://m", "sha256": {"kubelet": "a" * 64}}}),
        ".archives.kubernetes.sha256.kubeadm",
    ),
    "a checksum of another kind": (
        one(archives={"runc": {"url": "https://x/runc", "sha256": "abc"}}),
        ".archives.runc.sha256",
    ),
    "no checksum": (one(archives={"runc": {"url": "https://x/runc"}}), ".archives.runc.sha256"),
    "a file above": (one(files=[{"path": "/etc/../x", "content": ""}]), ".files[0].path"),
    "a relative file": (one(files=[{"path": "etc/x", "content": ""}]), ".files[0].path"),
    "a file of kubeadm": (one(files=[{"path": "/etc/kubernetes/kubelet.conf", "content": ""}]), ".files[0].path"),
    "a file of ours": (one(files=[{"path": "/etc/nodewright/join.json", "content": ""}]), ".files[0].path"),
    "a file twice": (one(files=[{"path": "/a", "content": ""}, {"path": "/a", "content": "x"}]), ".files[1].path"),
    "no base64": (one(files=[{"path": "/a", "content": "%%", "encoding": "base64"}]), ".files[0].content"),
    "a private key": (one(files=[{"path": "/a", "content": "-----BEGIN RSA PRIVATE KEY-----"}]), ".files[0].content"),
    "no Unicode": (one(files=[{"path": "/a", "content": "\ud800"}]), ".files"),
    "a user with a slash": (one(users=[{"name": "a/b"}]), ".users[0].name"),
    "sudo of two lines": (one(users=[{"name": "a", "sudo": "ALL\nALL"}]), ".users[0].sudo"),
    "no SSH key": (one(users=[{"name": "a", "sshAuthorizedKeys": ["hello"]}]), ".users[0].sshAuthorizedKeys[0]"),
    "argv and script": (one(preJoinCommands=[{"argv": ["a"], "script": "b"}]), ".preJoinCommands[0].script"),
    "neither": (one(postJoinCommands=[{"name": "nothing"}]), ".postJoinCommands[0].script"),
    "too long a command": (
        one(preInstallCommands=[{"argv": ["a"], "timeout": "2h"}]),
        ".preInstallCommands[0].timeout",
    ),
    "a flag of kubeadm": (
        one(nodeRegistration={"kubeletExtraArgs": [{"name": "kubeconfig", "value": "x"}]}),
        ".nodeRegistration.kubeletExtraArgs[0].name",
    ),
    "labels by a flag": (
        one(nodeRegistration={"kubeletExtraArgs": [{"name": "node-labels", "value": "x=y"}]}),
        ".nodeRegistration.kubeletExtraArgs[0].name",
    ),
    "two cgroup drivers": (
        one(kubeletConfiguration={"cgroupDriver": "cgroupfs"}),
        ".kubeletConfiguration.cgroupDriver",
    ),
    "swap that stops the kubelet": (
        one(swap="Keep", kubeletConfiguration={"failSwapOn": True}),
        ".kubeletConfiguration.failSwapOn",
    ),
    "another kind": (one(kubeletConfiguration={"kind": "Pod"}), ".kubeletConfiguration.kind"),
    "a misspelt field of the kubelet": (one(kubeletConfiguration={"maxpods": 5}), ".kubeletConfiguration.maxpods"),
    "a field of another type": (one(kubeletConfiguration={"maxPods": "many"}), ".kubeletConfiguration.maxPods"),
    "an eviction by number": (
        one(kubeletConfiguration={"evictionHard": {"memory.available": 5}}),
        ".kubeletConfiguration.evictionHard",
    ),
    "no duration": (one(kubeletConfiguration={"syncFrequency": "PT5M"}), ".kubeletConfiguration.syncFrequency"),
    "a misspelt field inside": (
        one(kubeletConfiguration={"authentication": {"anonymus": {}}}),
        ".kubeletConfiguration.authentication.anonymus",
    ),
    "a kubelet that does not register": (
        one(kubeletConfiguration={"registerNode": False}),
        ".kubeletConfiguration.registerNode",
    ),
    "a patch with an unknown field": (
        one(patches=[{"target": "kubeletconfiguration", "patch": "maxPod: 3"}]),
        ".patches[0].patch.maxPod",
    ),
    "very much": (one(kubeletConfiguration={"allowedUnsafeSysctls": ["a"] * 2000}), ".kubeletConfiguration"),
    "a patch that is no YAML": (one(patches=[{"target": "kubeletconfiguration", "patch": "{a"}]), ".patches[0].patch"),
    "a patch of the wrong form": (
        one(patches=[{"target": "kubeletconfiguration", "type": "json", "patch": "a: b"}]),
        ".patches[0].patch",
    ),
    "a patch of what a worker has not": (
        one(patches=[{"target": "etcd", "patch": "maxPods: 3"}]),
        ".patches[0].target",
    ),
    "no kernel setting": (one(sysctls={"a b": "1"}), ".sysctls[a b]"),
    "a kernel setting with a line break": (one(sysctls={"a.b": "1\nc.d = 2"}), ".sysctls[a.b]"),
    "no registry": (one(containerd={"registries": {"https://x": {}}}), ".containerd.registries[https://x]"),
    "a mirror twice": (
        one(containerd={"registries": {"x": {"mirrors": ["https://a/", "https://a/"]}}}),
        ".containerd.registries[x].mirrors[1]",
    ),
    "no CA": (
        one(containerd={"registries": {"x": {"caCertificate": "hello"}}}),
        ".containerd.registries[x].caCertificate",
    ),
    "a proxy that is a file": (one(proxy={"http": "file:///x"}), ".proxy.http"),
    "too large": (one(files=[{"path": f"/{n}", "content": "x" * 30_000} for n in range(3)]), ""),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_work_is_refused_with_its_field(case: str) -> None:
    spec, field = REFUSED[case]
    for found in (effective({}, spec).faults, problems(spec)):
        assert [each.field for each in found] == [f"spec.bootstrap{field}"]
    assert [each.field for each in problems(spec, "spec.template.spec")] == [f"spec.template.spec.bootstrap{field}"]


def test_a_fault_of_the_cluster_says_so() -> None:
    (found,) = of({"swap": "Keep"}, {"ntp": {"servers": []}}).faults
    assert found.field == "spec.bootstrap.ntp.servers"
    assert found.message.endswith("(of the Cluster)")


def test_what_is_incomplete_by_itself_may_be_completed_by_the_other_object() -> None:
    assert problems({"bootstrap": {"source": "Archives"}}) == ()
    assert [each.field for each in of({"source": "Archives"}).faults] == ["spec.bootstrap.archives"]
    assert of({"source": "Archives"}, {"archives": ARCHIVES}).faults == ()


def test_what_can_be_read_stays_beside_what_can_not() -> None:
    found = of({"swap": "perhaps", "kernelModules": ["ip_vs"]})
    assert (found.spec.swap, found.spec.kernel_modules) == (None, ["ip_vs"])


names = st.sampled_from(
    ["bootstrap", "packages", "archives", "repository", "url", "signingKey", "files", "path", "content", "users",
     "name", "sysctls", "proxy", "preJoinCommands", "argv", "script", "timeout", "kubeletConfiguration", "patches",
     "patch", "source", "containerd", "registries", "nodeRegistration", "kubeletExtraArgs", "ntp", "servers", "sha256"]
)  # fmt: skip
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["Image", KEY])
junk = st.recursive(
    leaves, lambda one: st.lists(one, max_size=3) | st.dictionaries(names, one, max_size=4), max_leaves=9
)


@given(cluster=st.dictionaries(names, junk, max_size=3), machine=st.dictionaries(names, junk, max_size=3))
def test_junk_of_any_shape_is_answered(cluster: Any, machine: Any) -> None:
    for found in (effective({"bootstrap": cluster}, {"bootstrap": machine}), effective(cluster, machine)):
        assert len(found.faults) <= 16
        assert found.source in ("Image", "Packages", "Archives")
    assert isinstance(problems({"bootstrap": machine}), tuple)


def test_very_many_faults_are_named_in_part_and_soon() -> None:
    spec = one(sysctls={f"a{n}": 1 for n in range(100_000)})
    assert [each.field for each in problems(spec)] == ["spec.bootstrap"]
    assert len(problems(one(users=[{"name": "%"}] * 30))) <= 16
    assert limits.MAX_BOOTSTRAP_BYTES == 65536


@pytest.mark.parametrize(("version", "refused"), [("1.35.4", True), ("1.36.0", False)])
def test_a_field_that_the_kubelet_is_too_old_for_is_refused(version: str, refused: bool) -> None:
    join = replace(JOIN, kubelet_version=version, settings=of({"kubeletConfiguration": {"tlsCurvePreferences": [29]}}))
    path = "spec.bootstrap.kubeletConfiguration.tlsCurvePreferences"
    assert [each.field for each in refusals(join)] == ([path] if refused else [])


def test_an_empty_bootstrap_on_either_object_asks_for_it() -> None:
    assert is_asked_for({"bootstrap": {}}, {})
    assert is_asked_for({}, {"bootstrap": {}})
    assert not is_asked_for({"bootstrap": None}, {"bootstrap": "yes"})
    assert of({"endpoint": "https://10.0.0.1:6443"}).endpoint == "https://10.0.0.1:6443"
    assert effective(None, 7).endpoint == ""

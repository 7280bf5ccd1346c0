"""What is known to go wrong with a version, or from one version to the next: data, and one pure function over it.

A rule that refuses names something that fails for certain, so nothing is made; one that warns names what an upgrade
or the next version breaks. What is not known of a host (its cgroups, its etcd) is no hazard, unless the rule says so.
The tests hold the rules to the real kubeadm and kubelet of the pinned version where those have an opinion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from controllers.bootstrap.join import OLDEST_SKEW
from controllers.kernel.version import Version, dotted, parse

Kind = Literal["refuse", "warn"]

KUBEADM_GATES: Final[Mapping[str, tuple[int, int]]] = {
    "ControlPlaneKubeletLocalMode": (31, 35),
    "EtcdLearnerMode": (27, 32),
    "NodeLocalCRISocket": (32, 36),
    "PublicKeysECDSA": (19, 36),
    "RootlessControlPlane": (22, 99),
    "WaitForAllControlPlaneComponents": (30, 34),
}
"""Feature gate of kubeadm → first and last minor version of 1.x that knows it (kubeadm: app/features). Naming one that
a kubeadm does not know is an error there."""
KUBEADM_KNOWN: Final = (31, 37)
"""First and last minor version of which ``KUBEADM_GATES`` holds every gate."""

KUBELET_FLAGS: Final[Mapping[str, int]] = {
    "cni-bin-dir": 24,
    "cni-cache-dir": 24,
    "cni-conf-dir": 24,
    "container-runtime": 27,
    "dynamic-config-dir": 24,
    "network-plugin": 24,
    "network-plugin-mtu": 24,
    "pod-infra-container-image": 35,
}
"""Flag of the kubelet → first minor version of 1.x that does not know it: a kubelet ends at once on an unknown flag."""

KUBELET_CLIENT_MOVED: Final[Mapping[int, tuple[int, int]]] = {33: (13, 13), 34: (5, 9999), 35: (5, 5), 36: (1, 3)}
"""Minor → the first patch that may, and the first that is known to, take cluster-admin from the API server's kubelet
client. Seen absent in 1.34.4, 1.35.4 and 1.36.0, present in 1.33.13, 1.35.5, 1.36.3 and 1.37. From 1.34.6 to 1.35.5
clusters broke."""
ETCD_SAFE: Final = (3, 5, 26)
"""The first etcd that writes promotions of learners to both of its stores."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the versions; what is not known is empty, None or "".

    ``cluster_version``: of the API server. ``container_runtime``: ``name/version``. ``cgroup``: "v1" or "v2".
    ``kubeadm_api``: group and version of a kubeadm document that the user brings. ``etcd_version``: the oldest one of
    the members; ``external_etcd``: kubeadm does not run it. ``kubelet_client_binding``: the
    ClusterRoleBinding ``kubeadm:apiserver-kubelet-client`` is there.
    """

    control_plane: bool = False
    cluster_version: str = ""
    container_runtime: str = ""
    cgroup: str = ""
    kubelet_configuration: Mapping[str, Any] = field(default_factory=dict)
    kubelet_args: Mapping[str, str] = field(default_factory=dict)
    kubeadm_gates: tuple[str, ...] = ()
    kubeadm_api: str = ""
    encryption_algorithm: str = ""
    etcd_version: str = ""
    external_etcd: bool = False
    kubelet_client_binding: bool = False


@dataclass(frozen=True, slots=True)
class Hazard:
    """One thing that goes wrong. ``field``: path of what has to change, in a Machine unless it says otherwise."""

    id: str
    kind: Kind
    field: str
    text: str
    remedy: str
    source: str

    @property
    def message(self) -> str:
        return f"{self.text}: {self.remedy}"


@dataclass(frozen=True, slots=True)
class Step:
    """From ``old`` (None: a new host) to ``new``."""

    old: Version | None
    new: Version


Found = Iterator[Mapping[str, str]]
"""One mapping for each time a rule applies: what its text fills in beside ``{old}``, ``{new}`` and ``{cluster}``."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``versions``: for which target versions it can apply, for people."""

    id: str
    kind: Kind
    versions: str
    field: str
    text: str
    remedy: str
    source: str
    applies: Callable[[Step, Context], Found]


def hazards(from_version: str, to_version: str, context: Context) -> tuple[Hazard, ...]:
    """All that is known to go wrong on the way from ``from_version`` ("": a new host) to ``to_version``.

    Total: () for versions that can't be read. 1.33.4 → 1.34.1 of a control plane with etcd 3.5.24 gives
    ``etcd-revived-members``.
    """
    new, old = parse(to_version), parse(from_version)
    if new is None or (from_version and old is None):
        return ()
    names = {"old": _text(old), "new": _text(new), "cluster": _text(parse(context.cluster_version))}
    return tuple(
        Hazard(
            rule.id,
            rule.kind,
            rule.field.format_map({**names, **found}),
            rule.text.format_map({**names, **found}),
            rule.remedy.format_map({**names, **found}),
            rule.source,
        )
        for rule in RULES
        for found in rule.applies(Step(old, new), context)
    )


def rows() -> list[str]:
    """The rules as lines of a table, for the documentation."""
    return [
        f"| `{rule.id}` | {rule.kind} | {rule.versions} | `{rule.field.replace('{name}', 'NAME')}` | "
        f"{rule.remedy.replace('{name}', 'NAME').replace('{last}', 'the last one')} |"
        for rule in RULES
    ]


def _text(version: Version | None) -> str:
    return "of unknown version" if version is None else dotted(version)


def _shown(text: str) -> str:
    return repr(text[:64])


def _one(applies: bool) -> Found:
    if applies:
        yield {}


def _newer(step: Step, context: Context) -> Found:
    cluster = parse(context.cluster_version)
    yield from _one(cluster is not None and not context.control_plane and step.new[:2] > cluster[:2])


def _too_old(step: Step, context: Context) -> Found:
    cluster = parse(context.cluster_version)
    if cluster is not None and cluster[0] == step.new[0] and cluster[1] - step.new[1] > OLDEST_SKEW:
        yield {"oldest": f"{cluster[0]}.{cluster[1] - OLDEST_SKEW}"}


def _kubeadm_behind(step: Step, context: Context) -> Found:
    cluster = parse(context.cluster_version)
    yield from _one(cluster is not None and step.new >= (1, 31, 0) and step.new[:2] < cluster[:2])


def _gates(step: Step, context: Context) -> Found:
    minor = step.new[1]
    complete = KUBEADM_KNOWN[0] <= minor <= KUBEADM_KNOWN[1]
    for name in context.kubeadm_gates:
        first, last = KUBEADM_GATES.get(name, (99, 0) if complete else (0, 9999))
        if not first <= minor <= last:
            yield {"name": name[:64]}


def _flags(step: Step, context: Context) -> Found:
    for name in sorted(set(context.kubelet_args) & set(KUBELET_FLAGS)):
        if step.new[1] >= KUBELET_FLAGS[name]:
            yield {"name": name, "gone": f"1.{KUBELET_FLAGS[name]}"}


def _cgroup(step: Step, context: Context) -> bool:
    return context.cgroup == "v1" and step.new >= (1, 35, 0)


def _takes_cgroup_v1(context: Context) -> bool:
    configuration = context.kubelet_configuration
    return isinstance(configuration, Mapping) and configuration.get("failCgroupV1") is False


def _old_containerd(step: Step, context: Context) -> Found:
    name, _, version = context.container_runtime.partition("/")
    found = parse(version)
    if name == "containerd" and found is not None and found < (2, 0, 0) and step.new >= (1, 35, 0):
        yield {"runtime": _text(found)}


def _etcd(step: Step, context: Context) -> Found:
    """kubeadm 1.31 to 1.33 bring 3.5.24, so an unknown version is taken for too old a one."""
    crosses = step.old is not None and step.old < (1, 34, 0) <= step.new
    etcd = parse(context.etcd_version)
    if crosses and context.control_plane and not context.external_etcd and (etcd is None or etcd < ETCD_SAFE):
        yield {"etcd": _text(etcd)}


def _client_binding(step: Step, context: Context) -> Found:
    """Taken for lost where it may be: looking for the binding costs one request, and making it harms nobody."""
    new_may = step.new >= (1, 37, 0) or step.new[2] >= KUBELET_CLIENT_MOVED.get(step.new[1], (9999, 9999))[0]
    old_has = step.old is not None and (
        step.old >= (1, 37, 0) or step.old[2] >= KUBELET_CLIENT_MOVED.get(step.old[1], (9999, 9999))[1]
    )
    upgrades = step.old is not None and step.old < step.new
    lost = upgrades and new_may and not old_has
    yield from _one(lost and context.control_plane and not context.kubelet_client_binding)


def _skipped(step: Step, context: Context) -> Found:
    if step.old is not None and context.control_plane and step.new[:2] > (step.old[0], step.old[1] + 1):
        yield {"next": f"{step.old[0]}.{step.old[1] + 1}"}


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "kubelet-newer-than-api-server", "refuse", "all", "spec.versions.kubelet",
        "kubelet {new} is newer than the API server, which is {cluster}",
        "upgrade the control plane first, or ask for a kubelet of its minor version", "Kubernetes: version skew policy",
        _newer,
    ),
    Rule(
        "kubelet-too-old", "refuse", "all", "spec.versions.kubelet",
        "kubelet {new} is more than three minor versions older than the API server, which is {cluster}",
        "ask for a kubelet at most three minor versions older than the API server", "Kubernetes: version skew policy",
        _too_old,
    ),
    Rule(
        "kubeadm-without-v1beta4", "refuse", "before 1.31", "spec.versions.kubelet",
        "kubeadm {new} can't read kubeadm.k8s.io/v1beta4",
        "ask for 1.31 or newer, or bring user data of your own", "kubeadm: app/apis/kubeadm of 1.30",
        lambda step, context: _one(step.new < (1, 31, 0) and context.kubeadm_api != "kubeadm.k8s.io/v1beta3"),
    ),
    Rule(
        "kubeadm-v1beta3-gone", "refuse", "since 1.37", "spec.bootstrap",
        "kubeadm {new} can't read kubeadm.k8s.io/v1beta3",
        "write the document as v1beta4: `kubeadm config migrate` of 1.31 to 1.36 does it", "kubeadm: 1.37",
        lambda step, context: _one(step.new >= (1, 37, 0) and context.kubeadm_api == "kubeadm.k8s.io/v1beta3"),
    ),
    Rule(
        "kubeadm-v1beta3-deprecated", "warn", "1.31 to 1.36", "spec.bootstrap",
        "kubeadm.k8s.io/v1beta3 is deprecated, and 1.37 can't read it",
        "write the document as v1beta4: `kubeadm config migrate` of 1.31 to 1.36 does it", "kubeadm: 1.31",
        lambda step, context: _one(
            (1, 31, 0) <= step.new < (1, 37, 0) and context.kubeadm_api == "kubeadm.k8s.io/v1beta3"
        ),
    ),
    Rule(
        "kubeadm-older-than-cluster", "warn", "all", "spec.versions.kubelet",
        "kubeadm {new} is older than the cluster, which is {cluster}; kubeadm supports joins within a minor version",
        "ask for a kubelet of the API server's minor version when the pool is upgraded",
        "kubeadm: version skew; cluster-api#13315", _kubeadm_behind,
    ),
    Rule(
        "kubeadm-gate-unknown", "refuse", "see KUBEADM_GATES", "featureGates[{name}]",
        "kubeadm {new} does not know the feature gate {name}",
        "leave {name} out for this version", "kubeadm: app/features", _gates,
    ),
    Rule(
        "kubelet-flag-removed", "refuse", "see KUBELET_FLAGS",
        "spec.bootstrap.nodeRegistration.kubeletExtraArgs[{name}]",
        "kubelet {new} ends at once on --{name}, which it does not know since {gone}",
        "remove the flag", "kubelet: cmd/kubelet/app/options", _flags,
    ),
    Rule(
        "cgroup-v1", "refuse", "since 1.35", "spec.bootstrap.kubeletConfiguration.failCgroupV1",
        "kubelet {new} does not start on a host with cgroup v1",
        "use an image with cgroup v2, or set failCgroupV1 to false", "kubernetes#134298",
        lambda step, context: _one(_cgroup(step, context) and not _takes_cgroup_v1(context)),
    ),
    Rule(
        "cgroup-v1-deprecated", "warn", "since 1.35", "spec.bootstrap.kubeletConfiguration.failCgroupV1",
        "the host has cgroup v1, whose support is going to be removed",
        "use an image with cgroup v2", "kubernetes#134298",
        lambda step, context: _one(_cgroup(step, context) and _takes_cgroup_v1(context)),
    ),
    Rule(
        "containerd-without-runtime-config", "warn", "since 1.35", "spec.versions.containerRuntime.version",
        "containerd {runtime} has no RuntimeConfig in its CRI, which kubelets after 1.37 are going to need",
        "use containerd 2.0 or newer", "kubeadm#3229", _old_containerd,
    ),
    Rule(
        "ecdsa-p384", "refuse", "before 1.34", "encryptionAlgorithm",
        "kubeadm {new} does not know the algorithm ECDSA-P384",
        "use ECDSA-P256, or ask for 1.34 or newer", "kubeadm: app/apis/kubeadm of 1.34",
        lambda step, context: _one(step.new < (1, 34, 0) and context.encryption_algorithm == "ECDSA-P384"),
    ),
    Rule(
        "etcd-revived-members", "refuse", "to 1.34 or newer from an older one", "etcd",
        "etcd 3.6 brings back members that were removed long ago where an old member ({etcd}) is older than 3.5.26",
        "set the etcd image to 3.5.26 or newer on all members first", "etcd#19557, k3s#13485", _etcd,
    ),
    Rule(
        "apiserver-kubelet-client", "refuse", "to 1.33.13, 1.34.5, 1.35.5, 1.36.1, 1.37.0 or newer from an older one",
        "clusterrolebindings[kubeadm:apiserver-kubelet-client]",
        "the API server of {new} reads logs and runs exec as a user that nothing allows to in a cluster of {old}",
        "make the ClusterRoleBinding kubeadm:apiserver-kubelet-client to system:kubelet-api-admin first",
        "kubernetes#138957, cluster-api#13770", _client_binding,
    ),
    Rule(
        "control-plane-skips-a-minor", "refuse", "all", "spec.versions.controlPlane",
        "a control plane can't go from {old} to {new} in one step",
        "go to the next minor version first", "Kubernetes: version skew policy", _skipped,
    ),
    Rule(
        "control-plane-downgrade", "refuse", "all", "spec.versions.controlPlane",
        "a control plane can't go back from {old} to {new}",
        "restore a snapshot into a new cluster of the older version", "Kubernetes: version skew policy",
        lambda step, context: _one(step.old is not None and context.control_plane and step.new[:2] < step.old[:2]),
    ),
)  # fmt: skip
"""In the order in which they are reported."""

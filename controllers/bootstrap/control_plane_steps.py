"""A host that runs a control plane: kubeadm's configuration, and the steps that create the cluster or join it.

The first host makes the cluster (``kubeadm init``), all others join it (``kubeadm join`` with ``controlPlane``). The
certificate authorities are given to each, so none is ever uploaded to the cluster. Facts of kubeadm are those of
kubeadm.k8s.io/v1beta4 and of cmd/kubeadm in Kubernetes 1.31 to 1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from api.bootstrap import ComponentArg, ControlPlaneSettings
from controllers.bootstrap import documents, virtual_address
from controllers.bootstrap.authorities import PKI_FOLDER, pki_files
from controllers.bootstrap.control_plane import ControlPlane
from controllers.bootstrap.join import Join
from controllers.bootstrap.prepare import command_steps
from controllers.bootstrap.steps import Command, File, Files, Script, Step

INIT_CONFIG = f"{documents.FOLDER}/init.json"
DONE = "/var/lib/nodewright/control-plane"
"""Written when kubeadm has ended well. It stays as long as the host is this Machine's."""
_BEGUN = "/var/lib/nodewright/control-plane-begun"
_TIME = 1200.0
"""Seconds for kubeadm: it pulls images, and waits for each part of the control plane."""
_TOKEN_LIFE = "1m0s"  # noqa: S105 (a duration)
"""kubeadm makes a token that nobody needs; this is the least that its cleaner can act on."""
_LEFT_BY_A_TRY = (
    "DirAvailable--var-lib-etcd", "FileAvailable--etc-kubernetes-manifests-etcd.yaml",
    "FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml",
    "FileAvailable--etc-kubernetes-manifests-kube-controller-manager.yaml",
    "FileAvailable--etc-kubernetes-manifests-kube-scheduler.yaml",
    "Port-10250", "Port-10257", "Port-10259", "Port-2379", "Port-2380", "Port-6443",
)  # fmt: skip
"""Checks of ``kubeadm init`` that a try before makes fail. Its phases take up what is there: nothing is wiped."""
_RESET = ("kubeadm", "reset", "--force", "--cert-dir", "/etc/nodewright/none", "--cri-socket",
          documents.CONTAINERD_SOCKET)  # fmt: skip
"""Takes the member of etcd away that a join has left half way. The authorities are not kubeadm's to remove."""


def init_files(join: Join) -> tuple[File, ...]:
    """kubeadm's configuration of the first control plane: JSON documents, which its reader of YAML takes too."""
    text = "---\n".join(documents.as_json(document) for document in init_documents(join))
    return (File(INIT_CONFIG, text, 0o600),)


def init_documents(join: Join) -> list[dict[str, Any]]:
    """InitConfiguration and ClusterConfiguration. ``join`` has a control plane."""
    assert join.control_plane is not None
    settings = join.settings
    patches = {"patches": {"directory": documents.PATCHES}} if documents.patch_files(settings.spec) else {}
    init = patches | {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "bootstrapTokens": [{"ttl": _TOKEN_LIFE, "usages": ["authentication"]}],
        "nodeRegistration": documents.registration(join),
    }
    return [init, cluster_configuration(join.control_plane, settings.spec.control_plane or ControlPlaneSettings())]


def cluster_configuration(control_plane: ControlPlane, asked: ControlPlaneSettings) -> dict[str, Any]:
    """``ClusterConfiguration`` of kubeadm.k8s.io/v1beta4, which kubeadm keeps in the cluster."""
    ranges = {
        "serviceSubnet": control_plane.services,
        "podSubnet": control_plane.pods,
        "dnsDomain": control_plane.dns_domain,
    }
    names = {"certSANs": sorted(asked.cert_sans)} if asked.cert_sans else {}
    disabled = asked.disabled_addons or ()
    parts: dict[str, Any] = {
        "networking": {name: value for name, value in ranges.items() if value},
        "apiServer": _component(asked.api_server_extra_args) | names,
        "controllerManager": _component(asked.controller_manager_extra_args),
        "scheduler": _component(asked.scheduler_extra_args),
        "etcd": {"local": _component(asked.etcd_extra_args)} if asked.etcd_extra_args else {},
        "dns": {"disabled": True} if "CoreDNS" in disabled else {},
        "proxy": {"disabled": True} if "KubeProxy" in disabled else {},
        "imageRepository": asked.image_repository,
    }
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": control_plane.cluster,
        "kubernetesVersion": f"v{control_plane.version}",
        "controlPlaneEndpoint": control_plane.endpoint,
        "certificatesDir": PKI_FOLDER,
        "encryptionAlgorithm": "ECDSA-P256",
        **{name: value for name, value in parts.items() if value},
    }


def steps(join: Join, config: Files) -> tuple[Step, ...]:
    """From a host on which all is installed to a member of the control plane. ``config``: kubeadm's documents."""
    assert join.control_plane is not None
    spec, control_plane = join.settings.spec, join.control_plane
    patches = documents.patch_files(spec)
    authorities = Files(pki_files(control_plane.pki) if control_plane.pki is not None else ())
    return (
        *command_steps(spec.pre_join_commands or (), "before the join"),
        *((Step("write kubeadm's patches", Files(patches)),) if patches else ()),
        Step("write the certificate authorities", authorities, (DONE,)),
        Step("write kubeadm's configuration", config, (DONE,)),
        *(_init(join, control_plane) if control_plane.initializes else _join()),
        *virtual_address.once_joined(join),
        *command_steps(spec.post_join_commands or (), "after the join"),
    )


def _init(join: Join, control_plane: ControlPlane) -> tuple[Step, ...]:
    checks = ",".join(_LEFT_BY_A_TRY)
    return (
        Step("check that no cluster is there yet", Script(_nobody_answers(control_plane.endpoint)), (_BEGUN,)),
        *(replace(step, done_if=(DONE,)) for step in virtual_address.before_init(join)),
        Step(
            "make the control plane",
            Script(
                "#!/bin/sh\n"
                "set -eu\n"
                "again=\n"
                f"if [ -e {_BEGUN} ]; then again=--ignore-preflight-errors={checks}; fi\n"
                f": > {_BEGUN}\n"
                f"kubeadm init --config={INIT_CONFIG} --skip-token-print $again\n"
                f": > {DONE}\n"
            ),
            (DONE,),
            timeout=_TIME,
        ),
    )


def _nobody_answers(endpoint: str) -> str:
    """A second ``kubeadm init`` behind one endpoint would split the cluster, so the host looks before it begins."""
    return (
        "#!/bin/sh\n"
        "command -v curl > /dev/null || exit 0\n"
        f"if curl --insecure --silent --output /dev/null --max-time 5 https://{endpoint}/version; then\n"
        f"  echo 'an API server answers at {endpoint} already: this host would make a second cluster behind it'\n"
        "  exit 1\n"
        "fi\n"
    )


def _join() -> tuple[Step, ...]:
    script = f"#!/bin/sh\nset -eu\n: > {_BEGUN}\nkubeadm join --config={documents.JOIN_CONFIG}\n: > {DONE}\n"
    return (Step("join the control plane", Script(script), (DONE,), timeout=_TIME, undo=Command(_RESET)),)


def _component(arguments: Sequence[ComponentArg] | None) -> dict[str, Any]:
    return {"extraArgs": [{"name": each.name, "value": each.value} for each in arguments]} if arguments else {}

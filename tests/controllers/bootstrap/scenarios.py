"""Joins whose rendered text is kept: the least that there is, and all that can be asked for from each source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from controllers.bootstrap.join import Join
from controllers.bootstrap.settings import effective
from tests.controllers.bootstrap.test_join import CA, JOIN

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQINBA==\n-----END PGP PUBLIC KEY BLOCK-----\n"
CLUSTER: dict[str, Any] = {
    "clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}},
    "bootstrap": {
        "containerd": {
            "sandboxImage": "registry.example/pause:3.10.1",
            "registries": {
                "docker.io": {"mirrors": ["https://mirror.example", "http://10.0.0.9:5000"], "caCertificate": CA},
                "registry.example:5000": {"insecureSkipVerify": True},
                "_default": {"mirrors": ["https://mirror.example/v2/all"], "overridePath": True},
            },
        },
        "proxy": {"http": "http://10.0.0.9:3128", "https": "http://10.0.0.9:3128/%41", "noProxy": [".corp.example"]},
        "ntp": {"servers": ["time.example", "10.0.0.8"]},
        "sysctls": {"vm.max_map_count": "262144"},
    },
}
ALL: dict[str, Any] = {
    "cgroupDriver": "cgroupfs",
    "swap": "Keep",
    "selinux": "Permissive",
    "kernelModules": ["ip_vs", "overlay"],
    "sysctls": {"net.ipv4.ip_forward": "1", "net.core.somaxconn": "1024"},
    "files": [
        {"path": "/etc/motd", "content": "it's $HOME & `id`\n", "permissions": "0640", "owner": "ops:adm"},
        {"path": "/opt/blob", "content": "AAEC/w==", "encoding": "base64"},
    ],
    "users": [
        {
            "name": "ops",
            "groups": ["adm", "sudo"],
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "sshAuthorizedKeys": ["ssh-ed25519 AAAAC3Nza ops@example"],
        },
        {"name": "guest", "shell": "/usr/sbin/nologin"},
    ],
    "preInstallCommands": [{"name": "mount the disk", "argv": ["echo", "a b", "$(id)", "it's"], "timeout": "90s"}],
    "preJoinCommands": [{"script": "#!/bin/bash\nset -e\necho 'ready' > /tmp/x\n"}],
    "postJoinCommands": [{"script": "echo joined\n"}],
    "kubeletConfiguration": {"maxPods": 50, "evictionHard": {"memory.available": "1Gi"}},
    "patches": [
        {"target": "kubeletconfiguration", "patch": "serializeImagePulls: false\n"},
        {
            "target": "kubeletconfiguration",
            "type": "json",
            "patch": '[{"op": "add", "path": "/registryPullQPS", "value": 9}]',
        },
    ],
    "nodeRegistration": {
        "kubeletExtraArgs": [{"name": "node-ip", "value": "10.0.0.7"}, {"name": "v", "value": "2"}],
        "ignorePreflightErrors": ["NumCPU", "Mem"],
    },
}
PACKAGES: dict[str, Any] = {
    "packages": {
        "repository": {"url": "https://packages.example/core:/stable:/v{minor}/{format}/", "signingKey": KEY},
        "runtimeRepository": {
            "url": "https://packages.example/{id}",
            "suite": "{codename}",
            "components": ["stable", "test"],
            "signingKey": KEY,
        },
        "runtimePackage": "containerd.io",
        "extra": ["nfs-common", "jq"],
    }
}
ARCHIVES: dict[str, Any] = {
    "archives": {
        "architecture": "arm64",
        "kubernetes": {"mirror": "https://mirror.example/k8s/", "sha256": {"kubelet": "a" * 64}},
        "containerd": {"url": "https://mirror.example/containerd.tar.gz", "sha256": "b" * 64},
        "runc": {"url": "https://mirror.example/runc.arm64", "sha256": "c" * 64},
        "cniPlugins": {"url": "https://mirror.example/cni.tgz", "sha256": "d" * 64},
    }
}


def with_settings(bootstrap: dict[str, Any], cluster: dict[str, Any] | None = None, **changes: Any) -> Join:
    return replace(JOIN, settings=effective(cluster or {}, {"bootstrap": bootstrap}), **changes)


SCENARIOS = {
    "worker": JOIN,
    "packages": with_settings({**ALL, **PACKAGES}, CLUSTER, container_runtime="containerd/1.7"),
    "archives": with_settings({**ALL, **ARCHIVES}, CLUSTER, container_runtime="containerd/2.1"),
}

"""Files of containerd: its configuration in both forms, and how each registry is reached.

containerd 1.x reads ``version = 2`` and ignores tables of ``version = 3`` without a word, and the other way round, so
the host chooses by the version that is installed. Strings are written as JSON has them, which TOML reads alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from api.bootstrap import Registry
from controllers.bootstrap.steps import File, RuntimeConfig

CONFIG = "/etc/containerd/config.toml"
UNIT = "containerd.service"
_CERTS = "/etc/containerd/certs.d"
_DOCKER_HUB = {"docker.io": "registry-1.docker.io"}
"""Registries whose API another host serves (containerd: core/remotes/docker)."""
_PULL = '["pull", "resolve"]'


def config(sandbox_image: str, *, systemd_cgroup: bool) -> RuntimeConfig:
    """``sandbox_image`` "": the default of the version that is installed."""
    cgroup = "true" if systemd_cgroup else "false"
    return RuntimeConfig(CONFIG, _legacy(sandbox_image, cgroup), _current(sandbox_image, cgroup), UNIT)


def _legacy(image: str, cgroup: str) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    sandbox = f"  sandbox_image = {_quoted(image)}\n" if image else ""
    return f"""\
version = 2
[{cri}]
{sandbox}  [{cri}.cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [{cri}.registry]
    config_path = "{_CERTS}"
  [{cri}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [{cri}.containerd.runtimes.runc.options]
      SystemdCgroup = {cgroup}
"""


def _current(image: str, cgroup: str) -> str:
    images, runtime = 'plugins."io.containerd.cri.v1.images"', 'plugins."io.containerd.cri.v1.runtime"'
    pinned = f"  [{images}.pinned_images]\n    sandbox = {_quoted(image)}\n" if image else ""
    return f"""\
version = 3
[{images}]
{pinned}  [{images}.registry]
    config_path = "{_CERTS}"
[{runtime}]
  [{runtime}.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [{runtime}.containerd.runtimes.runc.options]
      SystemdCgroup = {cgroup}
"""


def registry_files(registries: Mapping[str, Registry]) -> tuple[File, ...]:
    """``hosts.toml`` of each registry, and its CA beside it. containerd reads them at each pull."""
    files = []
    for host, registry in sorted(registries.items()):
        folder = f"{_CERTS}/{host}"
        files.append(File(f"{folder}/hosts.toml", _hosts(host, registry, folder)))
        if registry.ca_certificate:
            files.append(File(f"{folder}/ca.crt", registry.ca_certificate.strip() + "\n"))
    return tuple(files)


def _hosts(host: str, registry: Registry, folder: str) -> str:
    special = registry.ca_certificate or registry.insecure_skip_verify
    own = [f"https://{_DOCKER_HUB.get(host, host)}"] if special else []
    tables = []
    for url in registry.mirrors or own:
        lines = [f"[host.{_quoted(url)}]", f"  capabilities = {_PULL}"]
        lines += [f"  ca = {_quoted(f'{folder}/ca.crt')}"] if registry.ca_certificate else []
        lines += ["  skip_verify = true"] if registry.insecure_skip_verify else []
        lines += ["  override_path = true"] if registry.override_path else []
        tables.append("\n".join(lines) + "\n")
    return "\n".join(tables)


def _quoted(text: str) -> str:
    return json.dumps(text)

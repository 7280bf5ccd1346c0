"""Files that make a Debian tree a host: a stock image has them, or does not need them outside of a container."""

from __future__ import annotations

from pathlib import Path

PAUSE_IMAGE = "registry.k8s.io/pause:3.10.2"
"""The sandbox image by the name that kubeadm of the pinned version uses; ``images`` makes it on the spot."""

_MASKED = (
    "apt-daily-upgrade.timer", "apt-daily.timer", "console-getty.service", "dpkg-db-backup.timer",
    "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "getty@.service", "systemd-logind.service",
    "systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service",
    "systemd-resolved.service", "systemd-timesyncd.service", "systemd-udev-trigger.service", "systemd-udevd.service",
)  # fmt: skip
"""Units that have nothing to do in a container, or would change the machine that it runs on."""

_SSH_KEYS = """\
[Unit]
Description=Host keys of this host: the tree has none
Before=ssh.service
ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key
[Service]
Type=oneshot
ExecStart=/usr/bin/ssh-keygen -q -t ed25519 -N "" -f /etc/ssh/ssh_host_ed25519_key
[Install]
WantedBy=multi-user.target
"""

_CGROUPS = """\
[Unit]
Description=Cgroups that can be written, and kernel settings that stay those of the machine
DefaultDependencies=no
Before=sysinit.target containerd.service
[Service]
Type=oneshot
RemainAfterExit=yes
# A kubelet sets these four for the whole machine. It finds plain files that hold what it wants.
ExecStart=/bin/sh -c 'mkdir -p /run/sysctl; for x in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 \
kernel/panic_on_oops=1; do f=/run/sysctl/$$(echo $${x%%=*} | tr / .); echo $${x##*=} > $$f; \
mount --bind $$f /proc/sys/$${x%%=*}; done'
# Hierarchies of cgroup v1 are mounted read-only in a container.
ExecStart=/bin/sh -c 'for c in /sys/fs/cgroup/*; do mountpoint -q $$c && mount -o remount,bind,rw $$c; done; \
mount --make-rshared /'
[Install]
WantedBy=sysinit.target
"""

_IMAGES = """\
[Unit]
Description=Images that this host can't pull: no registry is reachable
Requires=containerd.service
After=containerd.service
Before=nodewright-bootstrap.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'for f in /opt/payload/*.tar; do [ ! -e $$f ] || ctr -n k8s.io images import $$f; done'
[Install]
WantedBy=multi-user.target
"""

_CONTAINERD = f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  # runc may not lower oom_score_adj where CAP_SYS_RESOURCE is missing
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE_IMAGE}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""

_CLOUD_INIT = """\
locale: C.UTF-8
disable_root: false
ssh_deletekeys: false
network: {config: disabled}
datasource_list: [NoCloud, None]
"""

ALL: dict[str, tuple[int, str]] = {
    "etc/systemd/system/ssh-host-keys.service": (0o644, _SSH_KEYS),
    "etc/systemd/system/lab-cgroups.service": (0o644, _CGROUPS),
    "etc/systemd/system/lab-images.service": (0o644, _IMAGES),
    "etc/containerd/config.toml": (0o644, _CONTAINERD),
    "etc/cloud/cloud.cfg.d/99-lab.cfg": (0o644, _CLOUD_INIT),
}
"""Path in the tree → mode and content."""
CONTAINERD_FILE = {"path": "/etc/containerd/config.toml", "content": _CONTAINERD}
"""As an entry of ``spec.bootstrap.files``: where containerd is configured anew, what this machine needs is kept."""
_WANTED = {
    "ssh-host-keys.service": "multi-user.target",
    "lab-images.service": "multi-user.target",
    "lab-cgroups.service": "sysinit.target",
}
"""Unit → target that starts it."""


def write_all(tree: Path) -> None:
    for path, (mode, text) in ALL.items():
        file = tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
    units = tree / "etc/systemd/system"
    for unit in _MASKED:
        _link(units / unit, "/dev/null")
    for unit, target in _WANTED.items():
        (units / f"{target}.wants").mkdir(exist_ok=True)
        _link(units / f"{target}.wants" / unit, f"../{unit}")
    (tree / "etc/machine-id").write_text("")
    for key in [*(tree / "etc/ssh").glob("ssh_host_*"), tree / "var/lib/dbus/machine-id"]:
        key.unlink(missing_ok=True)
    (tree / "opt/cni").mkdir(parents=True, exist_ok=True)
    _link(tree / "opt/cni/bin", "/usr/lib/cni")


def _link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)

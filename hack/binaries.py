"""Finds the binaries that tests take from Kubernetes itself, or builds them as pinned Go modules.

Looked for in this order: ``$KUBEBUILDER_ASSETS`` (the ecosystem's convention; ``setup-envtest use -p path`` prints
one), the cache folder, and then a build of ``hack/tools`` with the machine's Go toolchain. The first build of
kube-apiserver takes minutes of CPU; afterwards it is a file in the cache, named by the digest of ``go.sum``.

    python -m hack.binaries etcd kube-apiserver      # prints the paths, builds what is missing
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TOOLS = Path(__file__).parent / "tools"
PREVIOUS = TOOLS / "previous"
"""Kubelet and kubeadm of the minor version before: another module, since one has one version of Kubernetes."""
NEXT = TOOLS / "next"
"""Control plane of the minor version after, for what only that one serves (``make e2e-gangs-1.37``)."""
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubeadm": "k8s.io/kubernetes/cmd/kubeadm",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kubelet": "k8s.io/kubernetes/cmd/kubelet",
}
REMEDY = (
    "run `make real-plane` (needs Go 1.26+), or set KUBEBUILDER_ASSETS to a folder that has it "
    "(`setup-envtest use -p path` prints one)"
)


class BinaryMissing(Exception):
    """A binary is neither there nor can it be built; the message says what to do."""


def cache_folder(tools: Path = TOOLS) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256((tools / "go.sum").read_bytes()).hexdigest()[:12]
    return base / "nodewright" / "tools" / digest


def find(name: str, tools: Path = TOOLS) -> Path | None:
    """The binary if it is already there; never builds."""
    assets = os.environ.get("KUBEBUILDER_ASSETS") if tools == TOOLS else ""
    folders = [Path(assets)] if assets else []
    for folder in [*folders, cache_folder(tools)]:
        candidate = folder / name
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    return None


def kubernetes_version(tools: Path = TOOLS) -> str:
    """With v, such as ``v1.36.3``."""
    for line in (tools / "go.mod").read_text().splitlines():
        words = line.partition("//")[0].split()
        if "k8s.io/kubernetes" in words:
            return words[-1]
    raise BinaryMissing(f"{tools / 'go.mod'} does not require k8s.io/kubernetes")


def _stamp(tools: Path) -> str:
    version = kubernetes_version(tools)
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(f"-X {package}.{key}={value}" for package in packages for key, value in values.items())


def build(name: str, tools: Path = TOOLS) -> Path:
    """Build one binary into the cache; raises BinaryMissing where Go is missing or the build fails."""
    go = shutil.which("go")
    if go is None:
        raise BinaryMissing(f"{name} is missing and so is Go: {REMEDY}")
    target = cache_folder(tools) / name
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}")
    started = time.monotonic()
    print(f"building {name} ({PACKAGES[name]}, {kubernetes_version(tools)}) …", file=sys.stderr, flush=True)
    command = [go, "build", "-mod=readonly", "-ldflags", f"-s -w {_stamp(tools)}", "-o", str(partial), PACKAGES[name]]
    done = subprocess.run(command, cwd=tools, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BinaryMissing(f"building {name} failed:\n{done.stderr[-2000:]}")
    partial.replace(target)
    print(f"built {name} in {time.monotonic() - started:.0f} s: {target}", file=sys.stderr, flush=True)
    return target


@contextlib.contextmanager
def one_builder(target: Path) -> Iterator[None]:
    """Held by one process at a time: the others wait for its build, which takes minutes of both cores, and use it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def ensure(name: str, tools: Path = TOOLS) -> Path:
    found = find(name, tools)
    if found is not None:
        return found
    with one_builder(cache_folder(tools) / name):
        return find(name, tools) or build(name, tools)


def main() -> int:
    names = sys.argv[1:] or list(PACKAGES)
    try:
        for name in names:
            print(ensure(name))
    except BinaryMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

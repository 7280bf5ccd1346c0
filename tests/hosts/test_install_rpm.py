"""The same steps with the real dnf and rpm: install, pin, change, refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controllers.bootstrap import shell
from controllers.bootstrap.install import install_steps
from controllers.bootstrap.steps import Steps
from tests.hosts import chroots, rpms
from tests.hosts.chroots import Chroot
from tests.hosts.test_install import closed_port, installing

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.usefixtures("lab_folder")]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Chroot:
    return rpms.make(tmp_path_factory.mktemp("dnf") / "root")


@pytest.fixture
def bare(root: Chroot) -> Chroot:
    """Nothing is installed, nothing is pinned, no key is trusted."""
    root.run("dnf -q versionlock clear; rpm -e kubelet kubeadm; rpm -e --allmatches gpg-pubkey; rm -rf /var/cache/dnf")
    return root


def script_of(root: Chroot, version: str, **changes: Any) -> str:
    repository = {"url": "file:///srv/repo/v{minor}/{format}/", "signingKey": root.read("/srv/key"), **changes}
    steps = install_steps(installing({"packages": {"repository": repository}}, version))
    return shell.render(Steps(tuple(step for step in steps if "containerd" not in step.name)))  # the tree has none


def test_packages_are_installed_pinned_and_changed(bare: Chroot) -> None:
    for version in ("1.36.3", "1.36.3", "1.36.2"):
        done = bare.run(script_of(bare, version))
        assert done.returncode == 0, done.stdout
        assert bare.run("kubelet; kubeadm").stdout.split() == [f"v{version}"] * 2
        locked = bare.run("dnf -q versionlock list").stdout.split()
        assert locked == [f"{name}-0:{version}-150500.1.1.*" for name in ("kubelet", "kubeadm")]
    assert "exclude=kubelet kubeadm" in bare.read("/etc/yum.repos.d/nodewright-kubernetes.repo")


def test_a_version_that_no_repository_has_is_named_with_those_that_it_has(bare: Chroot) -> None:
    done = bare.run(script_of(bare, "1.36.9"))
    assert done.returncode != 0
    assert "no kubelet of 1.36.9 in the repositories of this host; there is: 1.36.2-150500.1.1 1.36.3" in done.stdout


def test_packages_signed_by_another_key_are_not_installed(bare: Chroot) -> None:
    with chroots.signer() as other:
        done = bare.run(script_of(bare, "1.36.3", signingKey=chroots.public_key(other)))
    assert done.returncode != 0
    assert "GPG check FAILED" in done.stdout
    assert bare.run("command -v kubelet").returncode != 0


def test_a_repository_that_does_not_answer_is_named(bare: Chroot, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port()}/"
    bare.run("echo skip_if_unavailable=True >> /etc/dnf/dnf.conf")  # as RHEL has it
    done = bare.run(script_of(bare, "1.36.3", url=url))
    assert done.returncode != 0
    assert f"the repository {url} can't be read" in done.stdout

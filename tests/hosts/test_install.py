"""The steps of the installation at work on a Debian tree: real apt, dpkg, gpg, useradd, visudo, tar."""

from __future__ import annotations

import hashlib
import socket
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controllers.bootstrap import cloud_config, shell
from controllers.bootstrap.install import install_steps
from controllers.bootstrap.join import Join
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import (
    Account,
    Action,
    Command,
    Files,
    NoSwap,
    Permissive,
    Script,
    Steps,
    TimeServers,
)
from hack.hosts import tree
from hack.hosts.mirror import Mirror
from tests.controllers.bootstrap.scenarios import SCENARIOS
from tests.controllers.bootstrap.test_join import JOIN
from tests.hosts import chroots
from tests.hosts.chroots import Chroot

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.usefixtures("lab_folder")]

PROGRAMS = {"kubelet": "echo Kubernetes v{}", "kubeadm": "echo v{}"}


@pytest.fixture
def root(tmp_path: Path) -> Chroot:
    return Chroot.make(tree.ensure(), tmp_path / "root")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """``spec.bootstrap.packages.repository`` of one that has kubelet and kubeadm of 1.36.2 and 1.36.3."""
    folder = tmp_path_factory.mktemp("packages")
    flat = folder / "v1.36" / "deb"
    flat.mkdir(parents=True)
    for version in ("1.36.2", "1.36.3"):
        for name, text in PROGRAMS.items():
            chroots.package(flat, name, f"{version}-1.1", f"#!/bin/sh\n{text.format(version)}\n")
    with chroots.signer() as home, Mirror(folder, "127.0.0.1") as server:
        chroots.index(flat, home)
        yield {"url": f"{server.url}/v{{minor}}/{{format}}/", "signingKey": chroots.public_key(home)}


def installing(bootstrap: dict[str, Any], version: str = "1.36.3") -> Join:
    settings = effective({}, {"bootstrap": bootstrap})
    assert settings.faults == ()
    return replace(JOIN, kubelet_version=version, settings=settings)


def script_of(join: Join) -> str:
    return shell.render(Steps(install_steps(join)))


def test_packages_of_a_repository_are_installed_held_and_changed(root: Chroot, repository: dict[str, Any]) -> None:
    bootstrap = {"packages": {"repository": repository}, "containerd": {"sandboxImage": "registry.example/pause:1"}}
    script = script_of(installing(bootstrap))
    for _ in range(2):  # the second run finds all done
        done = root.run(script)
        assert done.returncode == 0, done.stdout
    assert "v1.36.3" in root.run("kubelet; kubeadm").stdout
    assert root.run("apt-mark showhold").stdout.split() == ["containerd", "kubeadm", "kubelet"]
    listed = root.read("/etc/apt/sources.list.d/nodewright-kubernetes.list")
    assert listed.startswith("deb [signed-by=/etc/apt/keyrings/nodewright-kubernetes.asc] http://127.0.0.1:")
    assert 'sandbox_image = "registry.example/pause:1"' in root.read("/etc/containerd/config.toml")
    assert root.read("/etc/containerd/config.toml").startswith("version = 2\n")
    assert root.read("/srv/systemctl").splitlines().count("restart containerd.service") == 1

    done = root.run(script_of(installing(bootstrap, "1.36.2")))
    assert done.returncode == 0, done.stdout
    assert "v1.36.2" in root.run("kubelet").stdout
    assert root.run("apt-mark showhold").stdout.split() == ["containerd", "kubeadm", "kubelet"]


def test_a_version_that_no_repository_has_is_named_with_those_that_it_has(
    root: Chroot, repository: dict[str, Any]
) -> None:
    done = root.run(script_of(installing({"packages": {"repository": repository}}, "1.36.9")))
    assert done.returncode != 0
    assert "no kubelet of 1.36.9 in the repositories of this host; there is: 1.36.2-1.1 1.36.3-1.1" in done.stdout
    assert root.run("command -v kubelet").returncode != 0


def test_a_repository_signed_by_another_key_installs_nothing(root: Chroot, repository: dict[str, Any]) -> None:
    with chroots.signer() as other:
        changed = {**repository, "signingKey": chroots.public_key(other)}
        done = root.run(script_of(installing({"packages": {"repository": changed}})))
    assert done.returncode != 0
    assert f"{repository['url'].replace('{minor}', '1.36').replace('{format}', 'deb')} can't be read" in done.stdout
    assert "NO_PUBKEY" in done.stdout
    assert root.run("command -v kubelet").returncode != 0


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_a_repository_that_does_not_answer_is_named(root: Chroot, repository: dict[str, Any]) -> None:
    url = f"http://127.0.0.1:{closed_port()}/"
    done = root.run(script_of(installing({"packages": {"repository": {**repository, "url": url}}})))
    assert done.returncode != 0
    assert f"the repository {url} can't be read" in done.stdout
    assert "configure the repository of kubernetes failed" in done.stdout


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[Mirror, dict[str, str]]]:
    """A mirror without internet: its server, and the checksum of each file."""
    folder = tmp_path / "mirror"
    programs = {}
    for name, text in PROGRAMS.items():
        programs[name] = tmp_path / name
        programs[name].write_text(f"#!/bin/sh\n{text.format('1.36.3')}\n")
    (tmp_path / "containerd").write_text("#!/bin/sh\necho containerd github.com/containerd/containerd/v2 v2.1.4 abc\n")
    (tmp_path / "containerd").chmod(0o755)
    (tmp_path / "bridge").write_text("#!/bin/sh\n")
    with Mirror(folder, "127.0.0.1") as server:
        server.add("v1.36.3", programs)
        for archive, member, place in (("containerd", "containerd", "bin/containerd"), ("cni", "bridge", "./bridge")):
            with tarfile.open(folder / f"{archive}.tar.gz", "w:gz") as packed:
                packed.add(tmp_path / member, place)
        (folder / "runc").write_text("#!/bin/sh\n")
        served = {path.name: path for path in [*folder.glob("*.tar.gz"), folder / "runc", *programs.values()]}
        yield server, {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in served.items()}


def archives(server: Mirror, sums: dict[str, str]) -> dict[str, Any]:
    return {
        "archives": {
            "kubernetes": {
                "mirror": server.url,
                "sha256": {"kubelet": sums["kubelet"], "kubeadm": sums["kubeadm"]},
            },
            "containerd": {"url": f"{server.url}/containerd.tar.gz", "sha256": sums["containerd.tar.gz"]},
            "runc": {"url": f"{server.url}/runc", "sha256": sums["runc"]},
            "cniPlugins": {"url": f"{server.url}/cni.tar.gz", "sha256": sums["cni.tar.gz"]},
        }
    }


def test_archives_are_installed_and_the_new_containerd_gets_the_new_configuration(
    root: Chroot, files: tuple[Mirror, dict[str, str]]
) -> None:
    script = script_of(replace(installing(archives(*files)), container_runtime="containerd/2.1"))
    for _ in range(2):
        done = root.run(script)
        assert done.returncode == 0, done.stdout
    assert root.read("/etc/containerd/config.toml").startswith("version = 3\n")
    assert root.run("containerd --version; kubelet; /opt/cni/bin/bridge; runc").returncode == 0
    assert "ExecStart=/usr/local/bin/containerd\n" in root.read("/etc/systemd/system/containerd.service")


@pytest.mark.parametrize(
    ("wrong", "absent"),
    [
        ("kubelet", "/usr/bin/kubelet"),
        ("containerd.tar.gz", "/usr/local/bin/containerd"),
        ("runc", "/usr/local/sbin/runc"),
        ("cni.tar.gz", "/opt/cni/bin/bridge"),
    ],
)
def test_of_a_file_with_another_checksum_nothing_is_installed(
    root: Chroot, files: tuple[Mirror, dict[str, str]], wrong: str, absent: str
) -> None:
    server, sums = files
    done = root.run(script_of(installing(archives(server, {**sums, wrong: "0" * 64}))))
    assert done.returncode != 0
    assert "is not what its checksum says" in done.stdout
    assert wrong in done.stdout
    assert not root.changed(absent).exists()
    assert not list((root.folder / "up").rglob("*.new"))


def test_a_mirror_that_does_not_answer_is_named(root: Chroot, files: tuple[Mirror, dict[str, str]]) -> None:
    bootstrap = archives(*files)
    url = f"http://127.0.0.1:{closed_port()}/runc"
    bootstrap["archives"]["runc"]["url"] = url
    done = root.run(script_of(installing(bootstrap)).replace("--retry 5", "--retry 0"))
    assert done.returncode != 0
    assert f"{url} can't be fetched" in done.stdout
    assert "install runc failed" in done.stdout


def test_a_host_of_another_architecture_is_refused(root: Chroot, files: tuple[Mirror, dict[str, str]]) -> None:
    bootstrap = archives(*files)
    bootstrap["archives"]["architecture"] = "arm64"
    done = root.run(script_of(installing(bootstrap)))
    assert done.returncode != 0
    assert "the host is amd64, spec.bootstrap.archives.architecture is arm64" in done.stdout


def only(join: Join, *kinds: type[Action]) -> str:
    """The steps of these kinds, without those that would change the machine's kernel."""
    found = join_steps(join)
    assert isinstance(found, Steps)
    chosen = [step for step in found.steps if isinstance(step.action, kinds)]
    return shell.render(Steps(tuple(step for step in chosen if not isinstance(step.action, Command) or step.once)))


def test_users_files_and_commands_are_made_once(root: Chroot) -> None:
    bootstrap = {
        "users": [
            {
                "name": "ops",
                "groups": ["adm", "operators"],
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "sshAuthorizedKeys": ["ssh-ed25519 AAAA it's \\n $HOME"],
            },
            {"name": "root", "sshAuthorizedKeys": ["ssh-ed25519 BBBB root"]},
        ],
        "files": [
            {"path": "/srv/note", "content": "$(id) 'x'\n", "owner": "ops:operators", "permissions": "0640"},
        ],
        "preJoinCommands": [
            {"argv": ["sh", "-c", 'echo "$1" >> /srv/argv', "-", "a 'b' $(id)"]},
            {"script": "#!/bin/bash\necho ${BASH_VERSION:+bash} $(umask) $PWD >> /srv/script\n"},
        ],
    }
    script = only(installing(bootstrap), Account, Files, Command, Script)
    for _ in range(2):
        done = root.run(script)
        assert done.returncode == 0, done.stdout
    assert root.run("id -nG ops").stdout.split() == ["ops", "adm", "operators"]
    assert root.run("stat -c '%a %U %G' /srv/note").stdout == "640 ops operators\n"
    assert root.read("/srv/note") == "$(id) 'x'\n"
    assert root.read("/home/ops/.ssh/authorized_keys") == "ssh-ed25519 AAAA it's \\n $HOME\n"
    assert root.read("/root/.ssh/authorized_keys") == "ssh-ed25519 BBBB root\n"
    assert root.run("stat -c '%a %U' /home/ops/.ssh/authorized_keys").stdout == "600 ops\n"
    assert root.run("sudo -l -U ops").stdout.rstrip().endswith("(ALL) NOPASSWD: ALL")
    assert root.read("/srv/argv") == "a 'b' $(id)\n"
    assert root.read("/srv/script") == "bash 0022 /\n"


def test_sudo_that_makes_no_sense_changes_nothing(root: Chroot) -> None:
    done = root.run(only(installing({"users": [{"name": "ops", "sudo": "ALL OF IT"}]}), Account))
    assert done.returncode != 0
    assert "sudo does not understand ops ALL OF IT" in done.stdout
    assert not root.changed("/etc/sudoers.d/90-nodewright-ops").exists()


def test_swap_is_out_of_fstab_and_nothing_else_is(root: Chroot) -> None:
    root.write("/usr/local/sbin/swapoff", "#!/bin/sh\n", 0o755)  # the real one would ask the machine
    kept = "UUID=1 / ext4 rw 0 1\n# /dev/sdb none swap sw 0 0\n/dev/sdc /swap ext4 rw 0 0\n"
    root.write("/etc/fstab", kept + "/swapfile none swap sw 0 0\nUUID=2\tnone\tswap\n")
    for _ in range(2):
        assert root.run(only(installing({}), NoSwap)).returncode == 0
    off = "# off for the kubelet: "
    assert root.read("/etc/fstab") == kept + f"{off}/swapfile none swap sw 0 0\n{off}UUID=2\tnone\tswap\n"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_cloud_init_itself_takes_the_user_data(root: Chroot, scenario: str) -> None:
    found = join_steps(SCENARIOS[scenario])
    assert isinstance(found, Steps)
    root.write("/srv/user-data", cloud_config.render(found).decode())
    done = root.run("cloud-init schema --config-file /srv/user-data")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Valid cloud-config" in done.stdout


def test_time_servers_are_told_to_chrony_once_or_their_absence_is_said(root: Chroot) -> None:
    script = only(installing({"ntp": {"servers": ["time.example", "10.0.0.8"]}}), TimeServers)
    done = root.run(script)
    assert done.returncode != 0
    assert "neither chrony nor systemd-timesyncd is there" in done.stdout
    root.write("/usr/local/sbin/chronyd", "#!/bin/sh\n", 0o755)
    root.write("/etc/chrony/chrony.conf", "pool 2.debian.pool.ntp.org iburst\n")
    for _ in range(2):
        assert root.run(script).returncode == 0
    servers = "# Nodewright: begin\nserver time.example iburst\nserver 10.0.0.8 iburst\n# Nodewright: end\n"
    assert root.read("/etc/chrony/chrony.conf") == f"pool 2.debian.pool.ntp.org iburst\n{servers}"
    assert "restart chrony.service" in root.read("/srv/systemctl")


def test_selinux_becomes_permissive_where_it_is_and_nothing_happens_where_it_is_not(root: Chroot) -> None:
    script = only(installing({"selinux": "Permissive"}), Permissive)
    assert root.run(script).returncode == 0
    root.write("/usr/local/sbin/getenforce", "#!/bin/sh\ncat /srv/mode\n", 0o755)
    root.write("/usr/local/sbin/setenforce", '#!/bin/sh\n[ "$1" = 0 ] && echo Permissive > /srv/mode\n', 0o755)
    root.write("/srv/mode", "Enforcing\n")
    root.write("/etc/selinux/config", "# SELINUX=enforcing\nSELINUX=enforcing\nSELINUXTYPE=targeted\n")
    assert root.run(script).returncode == 0
    assert root.read("/srv/mode") == "Permissive\n"
    assert root.read("/etc/selinux/config") == "# SELINUX=enforcing\nSELINUX=permissive\nSELINUXTYPE=targeted\n"

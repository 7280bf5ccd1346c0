"""Users and time servers of a host that is changed, with the programs of a Debian tree: useradd, gpasswd, runuser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controllers.bootstrap import shell, worker_users, worker_way_back
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import Account, Steps, TimeServers
from controllers.bootstrap.upgrade import upgrade_steps
from hack.hosts import tree
from tests.controllers.bootstrap.test_join import JOIN
from tests.hosts.chroots import Chroot

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.usefixtures("lab_folder")]

ONE, TWO, OLD = ("ssh-ed25519 AAAA one@example", "ssh-ed25519 BBBB two", "ssh-ed25519 CCCC of before")
OPS = {"name": "ops", "groups": ["adm", "operators"], "sudo": "ALL=(ALL) NOPASSWD:ALL", "sshAuthorizedKeys": [ONE]}


@pytest.fixture
def root(tmp_path: Path) -> Chroot:
    """With a user that was there before."""
    made = Chroot.make(tree.ensure(), tmp_path / "root")
    made.write("/usr/local/sbin/loginctl", "#!/bin/sh\n", 0o755)
    done = made.run(f"""set -e
useradd -m -G adm old && cd /home/old && mkdir .ssh && echo '{OLD}' > .ssh/authorized_keys && chown -R old: .ssh
""")
    assert done.returncode == 0, done.stderr
    return made


def scripts(root: Chroot, steps: Steps | object, *kinds: type) -> str:
    assert isinstance(steps, Steps), steps
    ours = {"note what users are to have", "take from users what is asked for no longer"}
    chosen = tuple(
        replace(step, rescue="") for step in steps.steps if isinstance(step.action, kinds) or step.name in ours
    )
    return shell.render(Steps(chosen))


def run(root: Chroot, script: str) -> str:
    done = root.run(script)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + root.read("/var/lib/nodewright/bootstrap/log")


def joined(root: Chroot, *users: dict[str, Any]) -> None:
    settings = effective({}, {"bootstrap": {"users": list(users)}})
    run(root, scripts(root, join_steps(replace(JOIN, settings=settings)), Account))


def changed(root: Chroot, *users: dict[str, Any], **more: Any) -> str:
    """Twice: the second run finds all done."""
    settings = effective({}, {"bootstrap": {"users": list(users), **more}})
    script = scripts(root, upgrade_steps(replace(JOIN, settings=settings)), Account, TimeServers)
    first = run(root, script)
    run(root, script)
    return first


def keys(root: Chroot, name: str) -> str:
    return root.run(f"cat /home/{name}/.ssh/authorized_keys").stdout


def test_a_user_that_is_taken_out_goes_and_one_that_was_there_before_loses_only_what_it_was_given(root: Chroot) -> None:
    joined(root, OPS, {"name": "old", "groups": ["operators"], "sudo": "ALL=(ALL) ALL", "sshAuthorizedKeys": [TWO]})
    assert keys(root, "old") == f"{OLD}\n{TWO}\n"
    assert set(root.run("id -nG old").stdout.split()) == {"old", "adm", "operators"}
    root.run("echo mine > /home/ops/mine")
    changed(root)
    assert root.run("id ops").returncode != 0
    assert root.run("stat -c %U /home/ops.was-*/mine").stdout == "root\n"
    assert root.run("stat -c '%U %a' /home/ops.was-*").stdout == "root 700\n"
    assert root.run("test -e /home/ops").returncode != 0
    assert set(root.run("id -nG old").stdout.split()) == {"old", "adm"}
    assert keys(root, "old") == f"{OLD}\n"
    assert root.run("ls /etc/sudoers.d").stdout.find("nodewright") == -1
    assert not root.changed(worker_users.USERS).exists()


def test_a_user_that_comes_back_has_nothing_of_the_one_before(root: Chroot) -> None:
    joined(root, OPS)
    changed(root)
    changed(root, {"name": "ops", "sshAuthorizedKeys": [TWO]})
    assert keys(root, "ops") == f"{TWO}\n"
    assert root.run("id -nG ops").stdout == "ops\n"


def test_keys_groups_sudo_and_shell_of_a_user_follow_the_spec(root: Chroot) -> None:
    joined(root, OPS)
    changed(root, {"name": "ops", "groups": ["adm"], "shell": "/bin/sh", "sshAuthorizedKeys": [TWO]})
    assert keys(root, "ops") == f"{TWO}\n"
    assert root.run("stat -c '%a %U' /home/ops/.ssh/authorized_keys").stdout == "600 ops\n"
    assert set(root.run("id -nG ops").stdout.split()) == {"ops", "adm"}
    assert root.run("getent passwd ops").stdout.strip().endswith(":/bin/sh")
    assert root.run("test -e /etc/sudoers.d/90-nodewright-ops").returncode != 0
    changed(root, OPS)
    assert keys(root, "ops") == f"{ONE}\n"
    assert root.run("sudo -l -U ops").stdout.rstrip().endswith("(ALL) NOPASSWD: ALL")
    assert root.run("getent passwd ops").stdout.strip().endswith(":/bin/bash")


def test_nothing_is_taken_from_the_user_as_whom_the_controllers_log_in(root: Chroot) -> None:
    joined(root, OPS)
    root.write("/var/lib/nodewright/ssh/login", "ops\n")
    weaker = {"name": "ops", "sudo": "ALL=(ALL) ALL", "shell": "/usr/sbin/nologin", "sshAuthorizedKeys": [TWO]}
    for users in ([weaker], []):
        changed(root, *users)
        assert keys(root, "ops") == f"{ONE}\n{TWO}\n"
        assert root.run("sudo -l -U ops").stdout.rstrip().endswith("(ALL) NOPASSWD: ALL")
        assert root.run("getent passwd ops").stdout.strip().endswith(":/bin/bash")
    root.write("/var/lib/nodewright/ssh/login", "root\n")
    changed(root)
    assert root.run("id ops").returncode != 0, "by then it is a user like others"


def test_a_link_in_a_home_leads_nobody_to_a_file_of_root(root: Chroot) -> None:
    joined(root, {**OPS, "sudo": None})
    root.run(
        "echo root-only > /root/secret && chmod 600 /root/secret && ln -sf /root/secret /home/ops/.ssh/authorized_keys"
    )
    settings = effective({}, {"bootstrap": {"users": [{"name": "ops", "sshAuthorizedKeys": [TWO]}]}})
    done = root.run(scripts(root, upgrade_steps(replace(JOIN, settings=settings)), Account))
    assert done.returncode != 0
    assert root.run("cat /root/secret; stat -c %a /root/secret").stdout == "root-only\n600\n"


def test_a_change_that_fails_takes_away_the_users_that_it_made_and_no_others(root: Chroot) -> None:
    root.write("/usr/local/sbin/sleep", "#!/bin/sh\n", 0o755)
    joined(root, OPS)
    assert root.run(worker_way_back.keeping("a", [*worker_users.sudoers(effective({}, {}).spec)])).returncode == 0
    settings = effective({}, {"bootstrap": {"users": [{**OPS, "sshAuthorizedKeys": [TWO]}, {"name": "half"}]}})
    steps = upgrade_steps(replace(JOIN, settings=settings))
    assert isinstance(steps, Steps)
    run(root, scripts(root, Steps(steps.steps[:-1]), Account))
    assert root.run("id half").returncode == 0
    assert keys(root, "ops") == f"{ONE}\n{TWO}\n"
    done = root.run(worker_way_back.put_back("a"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert root.run("id half").returncode != 0
    assert keys(root, "ops") == f"{ONE}\n"
    assert root.run("id -nG ops").stdout.split() == ["ops", "adm", "operators"]


def test_time_servers_follow_the_spec_and_others_stay(root: Chroot) -> None:
    before = "pool 2.debian.pool.ntp.org iburst\nserver own.example iburst\n"
    changed(root)
    root.write("/usr/local/sbin/chronyd", "#!/bin/sh\n", 0o755)
    root.write("/etc/chrony/chrony.conf", before)

    def servers(*names: str) -> str:
        changed(root, ntp={"servers": list(names)} if names else None)
        return root.read("/etc/chrony/chrony.conf").removeprefix(before)

    block = "# Nodewright: begin\n{}# Nodewright: end\n"
    assert servers("a.example", "own.example") == block.format("server a.example iburst\n")
    assert servers("b.example") == block.format("server b.example iburst\n")
    assert servers() == ""
    assert root.read("/srv/systemctl").count("restart chrony.service") == 3

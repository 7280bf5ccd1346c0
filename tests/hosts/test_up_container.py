"""deploy/up/container.sh on a real host: the image of a release in containerd, confined, killed and started again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import binaries
from hack.hosts.lab import Lab, Record
from tests.docs.pages import ROOT
from tests.hosts.artefacts import IMAGE, image_archive
from tests.hosts.joining import until
from tests.hosts.test_up_service import FOLDER, SECONDS, Box, few

pytestmark = [pytest.mark.hosts, pytest.mark.slow, pytest.mark.kubectl]
START = f"ENGINE=/root/ctr_engine.py deploy/up/container.sh {IMAGE}"
TASK = "ctr -n k8s.io tasks"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory, lab_folder: Path) -> Iterator[Box]:
    folder = tmp_path_factory.mktemp("container")
    lab = Lab.make(folder / "lab")
    try:
        shutil.copy(image_archive(folder), lab.payload)
        shutil.copy(binaries.ensure("kubectl"), lab.payload / "kubectl")
        guest = lab.guest(lab.start(Record("box", "box", 0, "2026-01-01T00:00:00+00:00", {}), {}))
        shutil.copytree(ROOT / "deploy" / "up", guest.root / "root" / "deploy" / "up")
        shutil.copy(Path(__file__).with_name("ctr_engine.py"), guest.root / "root")
        guest.wait_booted(SECONDS)
        made = Box(guest)
        made.run("chmod 755 ctr_engine.py")
        until(lambda: IMAGE in made.run("ctr -n k8s.io images ls -q"), SECONDS)
        yield made
    finally:
        lab.clean()


def test_the_container_serves_confined_and_goes_on_after_a_kill(box: Box) -> None:
    box.run(START)
    until(box.answers, SECONDS)
    box.apply(few(2))
    until(lambda: box.ready() == "2", SECONDS)
    pid = box.run(f"{TASK} ls | awk '$1 == \"nodewright-up\" {{print $2}}'")
    status = box.run(f"grep -E '^(Uid|CapEff|NoNewPrivs):' /proc/{pid}/status").split("\n")
    assert [line.split()[1] for line in status] == ["65532", "0" * 16, "1"]
    assert " ro," in box.run(f"awk '$5 == \"/\" {{print $6 \",\"}} ' /proc/{pid}/mountinfo | sed 's/^/ /'")

    box.run(f"{TASK} kill -s KILL nodewright-up")
    until(lambda: f" {pid} " not in box.run(f"{TASK} ls | grep RUNNING || true"), SECONDS)
    box.run(f"{TASK} rm nodewright-up; ctr -n k8s.io containers rm nodewright-up; {START}")
    until(box.answers, SECONDS)
    assert box.ready() == "2"
    assert box.run(f"stat -c '%u %a' {FOLDER}") == "65532 700"

"""All artefacts of a release as bytes by their names, checked, so that a second run can be compared with the first."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from api import yamltext
from hack.release import chart, image, inventory, proof, sbom, version
from hack.release.parts import ROOT, commit_time, run
from nodewright.cli.installation.manifests import Choice, render


@dataclass(frozen=True, slots=True)
class Settings:
    """``registry``: where the image is going to be, "" if nobody knows yet. ``key``: PEM of an Ed25519 key, or None."""

    architectures: Sequence[str]
    registry: str
    key: Path | None
    downloads: Path


def artefacts(settings: Settings) -> dict[str, bytes]:
    """Raises ReleaseError where something is missing, not allowed or does not fit together."""
    number, when = version.released(), commit_time()
    commit = run("git", "rev-parse", "HEAD").decode().strip()
    made = distributions(when)
    wheel = next(data for name, data in made.items() if name.endswith(".whl"))
    name = f"{settings.registry.rstrip('/')}/nodewright:{number}".lstrip("/")
    built = image.build(image.Request(name, number, wheel, settings.architectures, when, settings.downloads, commit))
    made[f"nodewright-{number}-image.tar"] = built.archive
    made["image-digest.txt"] = f"{name}@{built.digest}\n".encode()
    made["install.yaml"] = install_yaml(name)
    made[f"nodewright-chart-{number}.tgz"] = chart.package(number, when)
    made |= lists(built, number, when)
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    made["release-notes.md"] = version.notes(text, number, tagged=version.is_tagged()).encode()
    made["provenance.intoto.json"] = proof.provenance(made, number, commit)
    made[proof.SUMS] = proof.sums(made)
    return made | (proof.signed(made[proof.SUMS], settings.key) if settings.key else {})


def distributions(when: int) -> dict[str, bytes]:
    """Wheel and sdist."""
    with tempfile.TemporaryDirectory(prefix="nodewright-dist-") as folder:
        environment = {"SOURCE_DATE_EPOCH": str(when)}
        run(sys.executable, "-m", "hatchling", "build", "-d", folder, env=environment)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def install_yaml(image_name: str) -> bytes:
    """What `nodewright install --controllers --print` prints, for `kubectl apply --server-side -f`."""
    return "---\n".join(yamltext.dump(obj) for obj in render(Choice(image_name))).encode()


def lists(built: image.Image, number: str, when: int) -> dict[str, bytes]:
    """What is in wheel and image, with licences. Raises ReleaseError for one that is not allowed."""
    made: dict[str, bytes] = {}
    for contents in built.contents:
        python = inventory.python_items(contents.locked)
        items = [*inventory.debian_items(contents), *python, *inventory.python_items(contents.program)]
        inventory.check(items)
        where = contents.architecture
        made[f"image-{where}.cdx.json"] = sbom.cyclonedx("container", "nodewright", number, items, when)
        made[f"licences-{where}.txt"] = inventory.table(items).encode()
        made["wheel.cdx.json"] = sbom.cyclonedx("library", "nodewright", number, python, when)
    return made

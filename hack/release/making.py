"""All artefacts of a release as bytes by their names, checked, so that a second run can be compared with the first."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from api import yamltext
from hack.packaging.moving_in import FOLDER_OF_SHARE
from hack.release import chart, image, inventory, krew, proof, sbom, shared, tree, version
from hack.release.parts import ROOT, ReleaseError, commit_time, run
from hack.site import building
from nodewright.cli.installation.manifests import Choice, render


@dataclass(frozen=True, slots=True)
class Settings:
    """``registry``: where the image is going to be, "" if nobody knows yet. ``key``: PEM of an Ed25519 key, or None.

    ``downloads``: folder that keeps Debian's packages. ``downloads_url``: where the artefacts are going to be.
    """

    architectures: Sequence[str]
    registry: str
    key: Path | None
    downloads: Path
    downloads_url: str = ""


def artefacts(settings: Settings) -> dict[str, bytes]:
    """Raises ReleaseError where something is missing, not allowed or does not fit together."""
    number, when = version.released(), commit_time()
    commit = clean_commit()
    made = distributions(when)
    wheel = next(data for name, data in made.items() if name.endswith(".whl"))
    name = f"{settings.registry.rstrip('/')}/nodewright:{number}".lstrip("/")
    built = image.build(image.Request(name, number, wheel, settings.architectures, when, settings.downloads, commit))
    made[f"nodewright-{number}-image.tar"] = built.archive
    made["image-digest.txt"] = f"{name}@{built.digest}\n".encode()
    made["install.yaml"] = install_yaml(name)
    made[f"nodewright-chart-{number}.tgz"] = chart.package(number, when)
    made[f"nodewright-docs-{number}.tar.gz"] = documentation(number, when)
    made[f"nodewright-share-{number}.tar.gz"] = shared.archive(number, when)
    made |= krew.artefacts(number, wheel, when, settings.downloads_url)
    made |= lists(built, number, when)
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    made["release-notes.md"] = version.notes(text, number, tagged=version.is_tagged()).encode()
    made["provenance.intoto.json"] = proof.provenance(made, number, commit)
    made[proof.SUMS] = proof.sums(made)
    return made | (proof.signed(made[proof.SUMS], settings.key) if settings.key else {})


def clean_commit(folder: Path = ROOT) -> str:
    """The commit that is released. Raises ReleaseError where files differ from it: the provenance would be wrong."""
    changed = run("git", "status", "--porcelain", folder=folder).decode().splitlines()
    if changed:
        raise ReleaseError(f"commit first: {len(changed)} files differ from the commit, {changed[0].split()[-1]} first")
    return run("git", "rev-parse", "HEAD", folder=folder).decode().strip()


def distributions(when: int) -> dict[str, bytes]:
    """Wheel and sdist, with manual pages and completions."""
    with tempfile.TemporaryDirectory(prefix="nodewright-dist-") as scratch:
        folder, share = Path(scratch) / "dist", Path(scratch) / "share"
        for path, data in shared.files(version.released(), when).items():
            (share / path).parent.mkdir(parents=True, exist_ok=True)
            (share / path).write_bytes(data)
        environment = {"SOURCE_DATE_EPOCH": str(when), FOLDER_OF_SHARE: str(share)}
        run(sys.executable, "-m", "hatchling", "build", "-d", str(folder), env=environment)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def documentation(number: str, when: int) -> bytes:
    """The site of this version, to be unpacked beside those of others."""
    with tempfile.TemporaryDirectory(prefix="nodewright-docs-") as folder:
        site = building.build(Path(folder), number).folder
        files = {f"{number}/{path.relative_to(site)}": path for path in sorted(site.rglob("*")) if path.is_file()}
        return tree.zipped(tree.to_tar({name: tree.file(path.read_bytes()) for name, path in files.items()}, when))


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

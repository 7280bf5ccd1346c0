"""The manifests of ``deploy/`` for one image, rendered by the kustomize that kubectl has built in."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api import yamltext
from nodewright.cli.exits import USAGE, CliError
from nodewright.shared_files import shared_folder

PART_OF = "app.kubernetes.io/part-of"
_SECONDS = 60
_NEXT_DOCUMENT = "\n---\n"
"""As kustomize writes it; text inside of a document is indented."""
LAYOUTS = ("base", "split")
"""Folders of ``deploy/`` that are a whole: all controllers in one Deployment, or in two with fewer rights each."""

BROUGHT = "unknown-fields"
"""The component that every layout has already; kustomize refuses to add it twice."""


@dataclass(frozen=True, slots=True)
class Choice:
    """``image``: with a tag or a digest. ``components``: names of folders in ``deploy/components``."""

    image: str
    layout: str = "base"
    components: tuple[str, ...] = ()


def components() -> tuple[str, ...]:
    """The names that may be chosen, sorted."""
    return tuple(sorted(path.name for path in (shared_folder("deploy") / "components").iterdir() if path.is_dir()))


def render(choice: Choice) -> list[dict[str, Any]]:
    """The objects in the order to apply them. Raises CliError for a name that is not there, or without kubectl."""
    _check(choice)
    with tempfile.TemporaryDirectory(prefix="nodewright-install-") as name:
        folder = Path(name)
        shutil.copytree(shared_folder("deploy"), folder / "deploy")
        (folder / "chosen").mkdir()
        (folder / "chosen" / "kustomization.yaml").write_text(yamltext.dump(_kustomization(choice)), encoding="utf-8")
        done = _kustomize(folder / "chosen")
    return [document for part in done.split(_NEXT_DOCUMENT) if (document := yamltext.load(part))]


def _check(choice: Choice) -> None:
    unknown = [name for name in choice.components if name not in components()]
    if unknown:
        raise CliError(f"--with {unknown[0]}: there is no such component", f"One of {', '.join(components())}", USAGE)
    if choice.layout not in LAYOUTS:
        raise CliError(f"--layout {choice.layout}: there is no such layout", f"One of {', '.join(LAYOUTS)}", USAGE)
    name, _, rest = choice.image.rpartition("/")
    if any(sign.isspace() for sign in choice.image) or not (":" in rest or "@" in rest) or not rest.strip(":@"):
        example = f"{name or 'REGISTRY'}/nodewright:0.1.0"
        raise CliError(f"--image {choice.image!r} names no tag and no digest", f"For instance {example}", USAGE)


def _kustomization(choice: Choice) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"../deploy/{choice.layout}"],
        "labels": [{"pairs": {PART_OF: "nodewright"}}],
        "images": [{"name": "nodewright", **_image(choice.image)}],
    }
    added = [name for name in choice.components if name != BROUGHT]
    if added:
        made["components"] = [f"../deploy/components/{name}" for name in added]
    return made


def _image(image: str) -> dict[str, str]:
    """``host:5000/nodewright:0.1.0`` is the name ``host:5000/nodewright`` and the tag ``0.1.0``."""
    if "@" in image:
        name, _, digest = image.partition("@")
        return {"newName": name, "digest": digest}
    name, _, tag = image.rpartition(":")
    return {"newName": name, "newTag": tag}


def _kustomize(folder: Path) -> str:
    binary = shutil.which("kubectl")
    if binary is None:
        raise CliError("kubectl is needed to render the manifests and is not in PATH", "Install kubectl 1.27 or newer")
    done = subprocess.run(  # noqa: S603 - the user's own kubectl, without a shell
        [binary, "kustomize", str(folder)], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if done.returncode:
        raise CliError(f"`kubectl kustomize` failed: {done.stderr.strip()[-500:]}", "Is kubectl 1.27 or newer?")
    return done.stdout

"""What is in the image and under which licence: names, versions, digests, read from what was put there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.parser import BytesHeaderParser

from hack.release.debian import SUITE
from hack.release.dependencies import SITE
from hack.release.image import Contents
from hack.release.parts import ReleaseError
from hack.release.tree import Tree

ALLOWED = frozenset({
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CNRI-Python", "ISC", "MIT", "MIT-0", "MIT-CMU",
    "MPL-2.0", "PSF-2.0", "Unlicense", "Zlib", "CC0-1.0", "EPL-2.0",
})  # fmt: skip
"""Licences of Python packages that may be in the image. Debian's own are free by its policy, and listed."""
ALLOWED_WITHIN = ALLOWED | {"LGPL-3.0-only"}
"""Of a package that another one carries in its own folders (``setuptools/_vendor``): files that can be replaced."""
_WORDS = {
    "apache": "Apache-2.0", "apache software license": "Apache-2.0", "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0", "apache-2": "Apache-2.0", "mit license": "MIT", "bsd license": "BSD",
    "bsd 3-clause": "BSD-3-Clause", "3-clause bsd license": "BSD-3-Clause", "psf": "PSF-2.0",
    "python software foundation license": "PSF-2.0", "python-2.0": "PSF-2.0",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0", "isc license (iscl)": "ISC", "zpl-2.1": "ZPL-2.1",
    "the unlicense (unlicense)": "Unlicense", "bsd-3-clause license": "BSD-3-Clause", "lgplv3": "LGPL-3.0-only",
}  # fmt: skip
_TITLES = {"the mit license (mit)": "MIT", "mit license": "MIT", "the mit license": "MIT"}
"""First lines of licence files."""
_CLASSIFIER = "License :: OSI Approved :: "


@dataclass(frozen=True, slots=True, order=True)
class Item:
    """``licence``: an SPDX expression of a Python package, or the names in the copyright file of Debian's.

    ``within``: the top folder of the package that carries this one in its own folders, such as ``setuptools``, or "".
    """

    kind: str
    name: str
    version: str
    licence: str
    sha256: str = ""
    architecture: str = ""
    within: str = ""

    @property
    def ref(self) -> str:
        """What no other item has: a package may be there by itself and within others, in one version."""
        return f"{self.purl}#{self.within}" if self.within else self.purl

    @property
    def purl(self) -> str:
        """As purl-spec says: ``pkg:pypi/numpy@2.3.0``, ``pkg:deb/debian/libc6@2.36-9?arch=amd64&distro=bookworm``."""
        if self.kind == "pypi":
            return f"pkg:pypi/{self.name.lower().replace('_', '-').replace('.', '-')}@{self.version}"
        version = self.version.replace("+", "%2B").replace(":", "%3A").replace("~", "~")
        return f"pkg:deb/debian/{self.name.replace('+', '%2B')}@{version}?arch={self.architecture}&distro={SUITE}"


def python_items(files: Tree) -> list[Item]:
    """Of every ``dist-info`` in ``files``, sorted."""
    found = []
    for path, entry in files.items():
        if path.startswith(SITE) and path.endswith(".dist-info/METADATA"):
            head = BytesHeaderParser().parsebytes(entry.data)
            within = path.removeprefix(f"{SITE}/").split("/")[:-2]
            name, version = str(head["Name"]), str(head["Version"])
            licence = _licence(head) or _titled(files, path.removesuffix("METADATA"), head)
            found.append(Item("pypi", name, version, licence, within="".join(within[:1])))
    return sorted(found)


def debian_items(contents: Contents) -> list[Item]:
    return sorted(
        Item(
            "deb",
            p.name,
            p.version,
            _named_in(p.files.get(f"usr/share/doc/{p.name}/copyright")),
            p.sha256,
            p.architecture,
        )
        for p in contents.packages
    )


def check(items: list[Item]) -> None:
    """Raises ReleaseError that names every Python package with a licence that is unknown or not in ``ALLOWED``."""
    bad = [
        f"{i.name} {i.version}{_carried(i)}: {i.licence or 'no licence named'}"
        for i in items
        if i.kind == "pypi" and not _is_allowed(i.licence, ALLOWED_WITHIN if i.within else ALLOWED)
    ]
    if bad:
        raise ReleaseError(f"licences that are not allowed (hack/release/inventory.py: ALLOWED): {'; '.join(bad)}")


def table(items: list[Item]) -> str:
    """One line each: name, version, licence; for people."""
    return "".join(
        f"{item.kind:5} {item.name:32} {item.version:24} {item.licence or '?'}{_carried(item)}\n" for item in items
    )


def _carried(item: Item) -> str:
    return f" (within {item.within})" if item.within else ""


def _licence(head: object) -> str:
    get = head.get_all  # type: ignore[attr-defined]
    expression = (get("License-Expression") or [""])[0]
    classifiers = [c.removeprefix(_CLASSIFIER) for c in get("Classifier") or () if c.startswith(_CLASSIFIER)]
    text = (get("License") or [""])[0].strip()
    short = text if text and "\n" not in text and len(text) < 60 else ""
    return expression or _known(short) or " OR ".join(_known(each) for each in classifiers) or short


def _titled(files: Tree, folder: str, head: object) -> str:
    """Of a package that names no licence: what heads each ``License-File`` (PEP 639), if all are known; else ""."""
    named = head.get_all("License-File") or ()  # type: ignore[attr-defined]
    texts = [files.get(f"{folder}licenses/{name}") for name in named]
    lines = [getattr(text, "data", b"").decode(errors="replace").strip().partition("\n")[0].strip() for text in texts]
    known = [_TITLES.get(line.lower(), "") for line in lines]
    return " AND ".join(known) if known and all(known) else ""


def _known(text: str) -> str:
    return _WORDS.get(text.lower(), text if _is_allowed(text) else "") if text else ""


def _is_allowed(expression: str, allowed: frozenset[str] = ALLOWED) -> bool:
    """``A OR B`` is allowed if one is, ``A AND B`` if both are."""
    ways = [
        way for way in re.split(r"\s+OR\s+", expression.replace("(", "").replace(")", ""), flags=re.IGNORECASE) if way
    ]
    return any(
        all(part.strip() in allowed for part in re.split(r"\s+AND\s+", way, flags=re.IGNORECASE)) for way in ways
    )


def _named_in(copyright_file: object) -> str:
    text = getattr(copyright_file, "data", b"").decode(errors="replace")
    return ", ".join(sorted({name.strip() for name in re.findall(r"^License: *(\S.*)$", text, re.MULTILINE)}))

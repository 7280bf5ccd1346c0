"""``spec.addons`` of a Cluster in a file (ADR 0064): taken out of the object, and read into add-ons.

A file is often somebody else's: it may name files below its own folder alone. What a Secret holds is quoted nowhere.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from controllers.kernel.refs import CONFIG_MAP, SECRET, Key, Kind, key_of, mapping, objects, spec_of
from nodewright.cli.commands.validate import texts
from nodewright.cli.creation.addons import AddOn
from nodewright.cli.creation.objects import DEFAULT_NAMESPACE, objects_in
from nodewright.cli.exits import CliError

_HINT = "Correct spec.addons and run again; nothing was done"
_FROM_STDIN = "<stdin>"


def without_addons(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The Cluster as an API server takes it."""
    if "addons" not in spec_of(cluster):
        return dict(cluster)
    return {**cluster, "spec": {name: value for name, value in spec_of(cluster).items() if name != "addons"}}


def addons_of(cluster: Mapping[str, Any], file: str, beside: Sequence[Mapping[str, Any]]) -> list[AddOn]:
    """In their order. ``file`` holds the Cluster, ``beside`` is all that the files hold. Raises CliError.

    The Cluster has passed the schema.
    """
    found: list[AddOn] = []
    for index, each in enumerate(objects(spec_of(cluster).get("addons"))):
        name = str(each.get("name"))
        title = f"Cluster {key_of(cluster)}: spec.addons[{index}] ({name})"
        if any(name == other.file for other in found):
            raise CliError(f"{title}: is given twice", _HINT)
        read = tuple(_objects(title, each, file, _Beside(cluster, beside)))
        if not read:
            raise CliError(f"{title}: holds no object", _HINT)
        found.append(AddOn(name, read))
    return found


class _Beside:
    """ConfigMaps and Secrets of the same files in the namespace of the Cluster."""

    def __init__(self, cluster: Mapping[str, Any], objects: Sequence[Mapping[str, Any]]) -> None:
        self._namespace = key_of(cluster).namespace or DEFAULT_NAMESPACE
        self._objects = objects

    def find(self, kind: Kind, name: str) -> Mapping[str, Any] | None:
        wanted = (kind.api_version, kind.name, Key(self._namespace, name))
        return next((each for each in self._objects if _identity(each) == wanted), None)


def _identity(obj: Mapping[str, Any]) -> tuple[str, str, Key]:
    meta = mapping(obj.get("metadata"))
    key = Key(str(meta.get("namespace") or DEFAULT_NAMESPACE), str(meta.get("name") or ""))
    return str(obj.get("apiVersion")), str(obj.get("kind")), key


def _objects(title: str, addon: Mapping[str, Any], file: str, beside: _Beside) -> Iterator[dict[str, Any]]:
    if addon.get("file"):
        for name, text in texts([str(_path(f"{title}: file", str(addon["file"]), file))]):
            yield from objects_in(name, text)
        return
    kind, field = (CONFIG_MAP, "configMap") if addon.get("configMap") else (SECRET, "secret")
    named = mapping(addon.get(field))
    name, where = str(named.get("name")), f"{title}: {field}"
    found = beside.find(kind, name)
    if found is None:
        raise CliError(f"{where}: the files hold no {kind} {name} in the namespace of the Cluster", _HINT)
    held = {**mapping(found.get("data")), **mapping(found.get("stringData") if kind == SECRET else None)}
    if named.get("key") and named["key"] not in held:
        raise CliError(f"{where}: {kind} {name} has no key {named['key']}", _HINT)
    for key in [named["key"]] if named.get("key") else sorted(held):
        plain = kind == CONFIG_MAP or key in mapping(found.get("stringData"))
        place = f"{kind} {name} key {key}"
        text = str(held[key]) if plain else _decoded(f"{where}: {place}", str(held[key]))
        yield from _objects_of_secret(where, place, text) if kind == SECRET else objects_in(place, text)


def _objects_of_secret(where: str, place: str, text: str) -> list[dict[str, Any]]:
    """A message about text quotes it."""
    try:
        return objects_in(place, text)
    except CliError:
        raise CliError(f"{where}: {place} is not YAML of objects with apiVersion, kind and name", _HINT) from None


def _decoded(where: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        raise CliError(f"{where} is not base64 of UTF-8 text", _HINT) from None


def _path(where: str, named: str, holder: str) -> Path:
    """Below the folder of the file that names it, symbolic links resolved."""
    if holder == _FROM_STDIN:
        raise CliError(f"{where}: a manifest on standard input has no folder that {named!r} could be in", _HINT)
    pure = PurePosixPath(named)
    folder = Path(holder).parent.resolve()
    try:
        path = (folder / named).resolve()
        inside = not pure.is_absolute() and ".." not in pure.parts and path.is_relative_to(folder)
        if inside and path.is_file():
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise CliError(f"{where}: {named[:200]!r} can't be read: {type(error).__name__}", _HINT) from error
    what = "is not there, or no file" if inside else f"is not below {folder}, the folder of {Path(holder).name}"
    raise CliError(f"{where}: {named[:200]!r} {what}", _HINT)

"""Store the objects of a kind anew, so that an old version of it is needed no more (Kubernetes: storage migration).

Each step may be done twice: a run that was stopped is done again from the beginning. Nobody's fields are changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from api.names import APPROVED_ANNOTATION
from controllers.kernel.refs import Key, Kind, annotations_of, key_of, mapping, objects, ref_of
from nodewright.cli.exits import CliError
from nodewright.cli.installation.applying import find
from nodewright.cli.installation.kinds import CRDS
from nodewright.cli.screen import say
from nodewright.cli.upgrading.own import Definition
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

_PAGE = 500
_PASSES_BY = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
"""The object is gone, or somebody has just written it: it is stored anew either way."""


async def rewrite(client: KubeClient, definition: Definition) -> None:
    """Until ``status.storedVersions`` is ``definition.storage`` alone. Raises CliError, ApiError and NoAnswer."""
    live = await _with_storage(client, definition)
    count = await _touch_all(client, kind_of(live, definition.storage))
    now = await _current(client, definition.name)
    if _storage_of(now) != definition.storage:
        text = f"{definition.name}: somebody changed its storage version meanwhile"
        raise CliError(text, "Run the same command again")
    status = {"storedVersions": [definition.storage]}
    await client.patch_status(ref_of(CRDS, now), status, str(now["metadata"]["resourceVersion"]))
    say(f"{definition.name}: {count} objects stored anew as {definition.storage}")


def kind_of(definition: Mapping[str, Any], version: str) -> Kind:
    spec = definition["spec"]
    named = spec["names"]
    return Kind(spec["group"], version, named["kind"], named["plural"], spec.get("scope") == "Namespaced")


async def _with_storage(client: KubeClient, definition: Definition) -> Mapping[str, Any]:
    """New writes are stored in the new version before old ones are touched.

    By apply, as the installation that follows: else it would find the list of versions in somebody else's hands.
    """
    live = await _current(client, definition.name)
    if _storage_of(live) == definition.storage:
        return live
    return await client.apply(CRDS, Key("", definition.name), _stored_in(live, definition), force=True)


def _stored_in(live: Mapping[str, Any], definition: Definition) -> dict[str, Any]:
    """The definition as it is there, but with the storage version of ``definition``."""
    versions = [
        {**each, "storage": each.get("name") == definition.storage} for each in objects(live["spec"].get("versions"))
    ]
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.name,
        "metadata": {
            "name": definition.name,
            "resourceVersion": live["metadata"]["resourceVersion"],
            "annotations": {name: value for name, value in annotations_of(live).items() if name == APPROVED_ANNOTATION},
        },
        "spec": {**live["spec"], "versions": versions},
    }


async def _touch_all(client: KubeClient, kind: Kind) -> int:
    """A write without a change is stored if the storage version is another one (etcd3 store of the API server)."""
    count, token = 0, ""
    while True:
        page = await client.list_page(kind, _PAGE, token)
        for obj in page.items:
            try:
                await client.merge_patch(
                    ref_of(kind, obj), {}, resource_version=str(obj["metadata"]["resourceVersion"])
                )
            except ApiError as error:
                if error.code not in _PASSES_BY:
                    text = f"{kind.name} {key_of(obj)} can't be stored anew: {error.message}"
                    raise CliError(text, "Mend that object, then run the same command again") from error
            count += 1
        token = page.continue_
        if not token:
            return count


async def _current(client: KubeClient, name: str) -> dict[str, Any]:
    live = await find(client, CRDS, Key("", name))
    if live is None:
        raise CliError(f"{name} is gone", "Run the same command again")
    return live


def _storage_of(definition: Mapping[str, Any]) -> str:
    versions = objects(mapping(definition.get("spec")).get("versions"))
    return next((str(each.get("name")) for each in versions if each.get("storage")), "")

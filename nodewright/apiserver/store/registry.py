"""Which resources are served just now? The built-in kinds, and those that CustomResourceDefinitions add."""

from __future__ import annotations

from collections.abc import Sequence

from nodewright.apiserver.store.builtin_kinds import CUSTOM_TRAITS, Traits, builtin_kinds
from nodewright.apiserver.values import Resource


class ResourceRegistry:
    """Finds resources by URL and by kind.

    `generation` grows whenever the answer of any method may have changed, so that discovery and OpenAPI documents
    can be cached by it.
    """

    def __init__(self) -> None:
        self.generation = 1
        self._by_url: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str, str], Resource] = {}
        self._traits: dict[str, Traits] = {}
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self._all: tuple[Resource, ...] | None = None
        for resource, traits in builtin_kinds():
            self._enter(resource)
            self._traits.setdefault(collection_name(resource), traits)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Find what is served at /apis/{group}/{version}/{plural} (/api/v1/{plural} for the core group "")."""
        return self._by_url.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """Find the resource of an object's apiVersion and kind."""
        return self._by_kind.get((group, version, kind))

    def all(self) -> Sequence[Resource]:
        """Give every served resource: built-in ones first, then custom ones by group, version and plural."""
        if self._all is None:
            builtin = [r for r in self._by_url.values() if r.builtin]
            custom = [r for r in self._by_url.values() if not r.builtin]
            custom.sort(key=lambda r: (r.group, r.version, r.plural))
            self._all = (*builtin, *custom)
        return self._all

    def any_version(self, group: str, kind: str) -> Resource | None:
        """Find a kind whatever its version, as the garbage collector does for owner references."""
        versions = (r for (g, _, k), r in self._by_kind.items() if (g, k) == (group, kind))
        return next(versions, None)

    def traits(self, resource: Resource) -> Traits:
        """Say how the server treats objects of this resource."""
        return self._traits.get(collection_name(resource), CUSTOM_TRAITS)

    def storage_version(self, resource: Resource) -> str:
        """Give the apiVersion in which objects of this resource are stored."""
        for version in self._custom.get(resource.group_resource, ()):
            if version.storage:
                return version.api_version
        return resource.api_version

    def custom(self, crd_name: str) -> tuple[Resource, ...]:
        """Give the resources that a CustomResourceDefinition added, in the order of its versions."""
        return self._custom.get(crd_name, ())

    def serve_custom(self, crd_name: str, resources: Sequence[Resource]) -> None:
        """Serve these versions for a CustomResourceDefinition instead of those it had before."""
        self._withdraw(crd_name)
        self._custom[crd_name] = tuple(resources)
        for resource in resources:
            if resource.served:
                self._enter(resource)
        self._changed()

    def withdraw_custom(self, crd_name: str) -> None:
        """Stop serving what a CustomResourceDefinition added."""
        self._withdraw(crd_name)
        self._changed()

    def _withdraw(self, crd_name: str) -> None:
        for resource in self._custom.pop(crd_name, ()):
            self._by_url.pop((resource.group, resource.version, resource.plural), None)
            self._by_kind.pop((resource.group, resource.version, resource.kind), None)

    def _enter(self, resource: Resource) -> None:
        self._by_url[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.group, resource.version, resource.kind] = resource

    def _changed(self) -> None:
        self.generation += 1
        self._all = None


def collection_name(resource: Resource) -> str:
    """Name the stored objects behind a resource: its group resource, but one set of Events for both groups."""
    return "events" if resource.group == "events.k8s.io" else resource.group_resource

"""The kinds that a store is to serve beside those of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nodewright.apiserver.store import Store
from nodewright.apiserver.values import OWN_MANAGER, ApiError, WriteOptions


def install_kinds(store: Store, crds: Iterable[Mapping[str, Any]]) -> None:
    """Put CustomResourceDefinitions in place, or bring them up to date. Raises ValueError for one that is none."""
    resource = store.resources.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert resource is not None
    options = WriteOptions(field_manager=OWN_MANAGER)
    for wanted in crds:
        body = dict(wanted)
        try:
            store.create(resource, "", body, options)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise ValueError(f"CustomResourceDefinition: {error.message}") from error
            name = body["metadata"]["name"]
            found = store.get(resource, "", name)
            metadata = {**body["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}
            store.update(resource, "", name, {**body, "metadata": metadata}, options)

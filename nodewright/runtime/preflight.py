"""Before work: can this process work at all? What can't heal by itself is said in plain words, with what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from api import names
from controllers.kernel.conditions import some_of
from controllers.kernel.refs import Kind
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError, NoAnswer
from nodewright.runtime.settings import wiring
from nodewright.runtime.settings.options import Reconcilers, StartRefusedError
from nodewright.runtime.settings.rights import Right, to_begin, to_work

_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
_RETRY = 1.0
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Preflight:
    """``say`` is called with a line for people while the API server is waited for."""

    reconcilers: Reconcilers
    namespace: str = ""
    leases_in: str = names.SYSTEM_NAMESPACE
    say: Callable[[str], None] = field(default=lambda _line: None)

    async def run(self, client: KubeClient) -> None:
        """Returns once work may begin. Raises StartRefusedError if a person has to do something first."""
        await self._until_it_answers(client)
        await self._kinds(client)
        await self._fields(client)
        await self._rights(client)

    async def _until_it_answers(self, client: KubeClient) -> None:
        message = ""
        while True:
            try:
                await client.version()
            except NoAnswer as error:
                if not message:
                    message = (
                        f"waiting: no answer from the API server: {error}; see whether it runs and is the one you mean"
                    )
                    self.say(message)
                await asyncio.sleep(_RETRY)
            except ApiError as error:
                _refuse_strangers(error)
                return  # /version may be closed to us, or answer through a proxy: what follows tells
            else:
                return

    async def _kinds(self, client: KubeClient) -> None:
        wanted = [kind for kind in wiring.kinds_of(self.reconcilers) if kind.group in _CUSTOM]
        for group, version in sorted({(kind.group, kind.version) for kind in wanted}):
            try:
                served = {str(each.get("name")) for each in await client.resources(group, version)}
            except ApiError as error:
                _refuse_strangers(error)
                if not error.not_found:
                    return  # discovery is closed to us
                served = set()
            missing = [kind.plural for kind in wanted if kind.group == group and kind.plural not in served]
            if missing:
                raise StartRefusedError(
                    f"the API server does not serve {', '.join(sorted(missing))} of {group}/{version}",
                    "Install the CustomResourceDefinitions first: `nodewright install`",
                )

    async def _fields(self, client: KubeClient) -> None:
        """Definitions that are older than this program would drop fields that it writes, without a word."""
        wanted = {kind.name for kind in wiring.kinds_of(self.reconcilers) if kind.group == names.GROUP}
        try:
            served = await client.schemas(names.GROUP, names.VERSION)
        except (ApiError, NoAnswer):
            return  # not served to us
        lacking = missing_fields(wanted, served)
        if lacking:
            raise StartRefusedError(
                f"the CustomResourceDefinitions are older than this program: they lack {_some(lacking)}",
                "Upgrade them: `nodewright install`",
            )

    async def _rights(self, client: KubeClient) -> None:
        parts = wiring.parts_of(self.reconcilers, self.namespace)
        missing = await _missing(client, to_begin(self.reconcilers, parts, self.leases_in))
        if missing:
            raise StartRefusedError(f"this process may not: {_some(missing)}", _GRANT)
        missing = await _missing(client, to_work(self.reconcilers, self.namespace))
        if missing:
            self.say(f"warning: this process may not: {_some(missing)}; what needs it will fail. {_GRANT}")


def _refuse_strangers(error: ApiError) -> None:
    if error.code == 401:
        hint = "Renew the credentials in the kubeconfig"
        raise StartRefusedError("the API server does not know this process", hint) from error


def missing_fields(kinds: Iterable[str], served: Mapping[str, Any]) -> list[str]:
    """Fields of our definitions that the served schemas lack, as ``Machine.spec.taints``.

    ``served``: OpenAPI schemas by name. A kind that is not among them says nothing.
    """
    theirs = {
        str(each.get("kind")): schema
        for schema in served.values()
        if isinstance(schema, Mapping)
        for each in schema.get("x-kubernetes-group-version-kind") or ()
    }
    found: list[str] = []
    for crd in load_crds():
        kind = crd["spec"]["names"]["kind"]
        if kind in kinds and kind in theirs:
            ours = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            for part in ("spec", "status"):
                _compare(ours, theirs[kind], (kind,), part, found)
    return found


def _compare(ours: Mapping[str, Any], theirs: Any, path: tuple[str, ...], name: str, found: list[str]) -> None:
    mine = (ours.get("properties") or {}).get(name)
    other = (theirs.get("properties") or {}).get(name) if isinstance(theirs, Mapping) else None
    if mine is None:
        return
    if other is None:
        found.append(".".join((*path, name)))
        return
    for field_name in mine.get("properties") or {}:
        _compare(mine, other, (*path, name), field_name, found)


_GRANT = "Grant it (deploy/rbac has a role for each controller), or run fewer controllers with --controllers"


async def _missing(client: KubeClient, rights: Sequence[Right]) -> list[str]:
    allowed = await asyncio.gather(*(_may(client, right) for right in rights))
    return [str(right) for right, may in zip(rights, allowed, strict=True) if not may]


def _review_of(right: Right) -> dict[str, Any]:
    resource, _, subresource = right.resource.partition("/")
    asked = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    return {
        "apiVersion": _REVIEW.api_version,
        "kind": _REVIEW.name,
        "metadata": {},
        "spec": {"resourceAttributes": {key: value for key, value in asked.items() if value}},
    }


async def _may(client: KubeClient, right: Right) -> bool:
    """A server without such reviews has nothing to say against it."""
    try:
        answer = await client.create(_REVIEW, _review_of(right))
    except (ApiError, NoAnswer):
        return True
    return bool((answer.get("status") or {}).get("allowed"))


_CUSTOM = (
    names.GROUP,
    "autoscaling.x-k8s.io",
    "scheduling.k8s.io",
    "scheduling.x-k8s.io",
    "scheduling.volcano.sh",
)


def _some(words: list[str]) -> str:
    return some_of(words, _MOST_NAMED)

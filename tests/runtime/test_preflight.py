"""What `run` looks at before it works, and what it says in plain words."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
import yaml

from api import names
from controllers.kernel.refs import Key, Kind, Ref
from nodewright.crds import load_crds
from nodewright.runtime.kube.client import ClientLimits, KubeClient
from nodewright.runtime.kube.connection import Connection
from nodewright.runtime.preflight import Preflight, missing_fields
from nodewright.runtime.settings.options import StartRefusedError
from nodewright.runtime.settings.rights import WRITES
from nodewright.runtime.settings.wiring import reconcilers
from tests.deploy.rights import granted
from tests.docs.pages import ROOT
from tests.runtime.town import SECONDS, Town

CRDS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)


async def refusal_of(client: KubeClient) -> str:
    """What it says once the server has taken in a change of its definitions."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                await Preflight(reconcilers()).run(client)
            except StartRefusedError as error:
                return f"{error.message}|{error.remedy}"
            await asyncio.sleep(0.05)


async def test_a_cluster_with_all_that_is_needed_passes(town: Town) -> None:
    said: list[str] = []
    await Preflight(reconcilers(), say=said.append).run(town.client)
    assert said == []


async def test_kinds_that_are_not_served_are_named_with_what_to_do(town: Town) -> None:
    await town.client.delete(Ref(CRDS, Key("", f"machines.{names.GROUP}")))

    said = await refusal_of(town.client)
    assert said.startswith(f"the API server does not serve machines of {names.GROUP}/v1alpha1|")
    assert "nodewright install" in said


def _served() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for crd in load_crds():
        kind, version = crd["spec"]["names"]["kind"], crd["spec"]["versions"][0]
        schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
        schema["x-kubernetes-group-version-kind"] = [
            {"group": crd["spec"]["group"], "version": version["name"], "kind": kind}
        ]
        found[kind] = schema
    return found


def test_definitions_that_are_older_are_told_by_what_they_lack() -> None:
    served = _served()
    assert missing_fields({"Machine", "MachineSet"}, served) == []
    del served["Machine"]["properties"]["spec"]["properties"]["taints"]
    del served["MachineSet"]["properties"]["spec"]["properties"]["template"]["properties"]["spec"]
    assert missing_fields({"Machine", "MachineSet"}, served) == ["Machine.spec.taints", "MachineSet.spec.template.spec"]
    assert missing_fields({"Cluster"}, served) == []
    assert missing_fields({"Machine"}, {"odd": None, "odder": {"x-kubernetes-group-version-kind": [{}]}}) == []


async def test_definitions_of_an_older_version_are_refused(town: Town) -> None:
    (crd,) = [crd for crd in load_crds() if crd["spec"]["names"]["kind"] == "Machine"]
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["taints"]
    await town.client.merge_patch(Ref(CRDS, Key("", crd["metadata"]["name"])), {"spec": crd["spec"]})
    replaced = {"spec": {"versions": crd["spec"]["versions"]}}
    await town.client.merge_patch(Ref(CRDS, Key("", crd["metadata"]["name"])), replaced)

    said = await refusal_of(town.client)
    assert said.startswith("the CustomResourceDefinitions are older than this program: they lack Machine.spec.taints|")


class Reviewer(KubeClient):
    """Whose access reviews say no to some rights, as RBAC does."""

    denied: tuple[str, str] = ("", "")

    async def create(self, kind: Kind, body: Any) -> dict[str, Any]:
        if kind.name != "SelfSubjectAccessReview":
            return await super().create(kind, body)
        asked = body["spec"]["resourceAttributes"]
        return {"status": {"allowed": (asked["verb"], asked["resource"]) != self.denied}}


@pytest.mark.parametrize("right", [("watch", "machines"), ("patch", "leases"), ("list", "nodes")])
async def test_without_a_right_to_begin_it_is_refused(town: Town, right: tuple[str, str]) -> None:
    async with Reviewer(town.connection, "test") as client:
        client.denied = right
        with pytest.raises(StartRefusedError, match=f"may not: {right[0]} {right[1]}") as refusal:
            await Preflight(reconcilers()).run(client)
        assert "deploy/rbac" in refusal.value.remedy


async def test_without_a_right_to_some_of_the_work_it_is_said(town: Town) -> None:
    said: list[str] = []
    async with Reviewer(town.connection, "test") as client:
        client.denied = ("delete", "nodes")
        await Preflight(reconcilers(), say=said.append).run(client)
    (line,) = said
    assert line.startswith("warning: this process may not: delete nodes; what needs it will fail.")


async def test_an_api_server_that_is_not_there_is_waited_for_and_said_once() -> None:
    said: list[str] = []
    heard = asyncio.Event()

    def say(line: str) -> None:
        said.append(line)
        heard.set()

    async with KubeClient(Connection("http://127.0.0.1:1"), "test", ClientLimits(attempts=1)) as client:
        task = asyncio.create_task(Preflight(reconcilers(), say=say).run(client))
        await asyncio.wait_for(heard.wait(), SECONDS)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert said[0].startswith("waiting: no answer from the API server: ")


async def test_unknown_credentials_are_refused(town: Town) -> None:
    """`/version` answers everybody, as on a real server."""
    async with KubeClient(Connection(town.connection.server, ca=town.connection.ca), "test") as client:
        with pytest.raises(StartRefusedError, match="does not know this process"):
            await Preflight(reconcilers()).run(client)


@pytest.mark.parametrize("name", [reconciler.name for reconciler in reconcilers()])
def test_the_rights_that_are_asked_for_are_those_of_the_shipped_role(name: str) -> None:
    role = yaml.safe_load((ROOT / "deploy" / "rbac" / f"{name}.yaml").read_text())
    shipped = {(each.group, each.resource, each.verb) for each in granted(role) if each.verb not in {"list", "watch"}}
    shipped -= {("", "namespaces", "get")}  # the mark of hosts; without it they carry none
    assert shipped == {(group, resource, verb) for group, resource, verbs in WRITES[name] for verb in verbs}

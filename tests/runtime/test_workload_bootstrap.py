"""Bootstrap data of workload clusters: the token lies where the Node is to be, the data beside the Machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from api import names
from controllers.bootstrap.calls import data_of
from controllers.bootstrap.credentials import secret_key, token_ids
from controllers.kernel.conditions import find
from controllers.kernel.refs import CLUSTER, SECRET, Key, Ref, key_of, labels_of, uid_of
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.kubeconfig import load_kubeconfig
from nodewright.runtime.settings.options import utc_now
from tests.runtime.country import Country, Elsewhere
from tests.runtime.town import Town

ENDPOINT = "https://prod.example:6443"
NEVER_JOINS = {"bootSeconds": 3000.0}


async def joins_by_itself(town: Town, cluster: str) -> None:
    patch = {"spec": {"bootstrap": {"endpoint": ENDPOINT}}}
    await town.client.merge_patch(Ref(CLUSTER, Key("default", cluster)), patch)


def tokens(there: Elsewhere | Town) -> list[dict[str, str]]:
    found = [each for each in there.objects(SECRET) if each.get("type") == names.TOKEN_SECRET_TYPE]
    return [{**data_of(each), "uid": labels_of(each)[names.TOKEN_MACHINE_UID_LABEL]} for each in found]


async def test_machines_of_a_workload_cluster_join_it_by_tokens_that_lie_there(town: Town, tmp_path: Path) -> None:
    country = Country(town, tmp_path)
    async with country.elsewhere("prod") as (prod,):
        await joins_by_itself(town, "prod")
        async with town.controllers():
            await country.machine_set("prod", 1, **NEVER_JOINS)
            await town.until(lambda: country.hosts("prod") == 1)
            (machine,) = country.machines("prod")
            (token,) = tokens(prod)
            assert token["uid"] == uid_of(machine)
            assert token["token-id"] == token_ids(uid_of(machine))[0]
            assert not tokens(town)
            kept = await town.client.get(SECRET, secret_key(key_of(machine)))
            assert data_of(kept)["token"] == f"{token['token-id']}.{token['token-secret']}"
            assert labels_of(kept)[names.CLUSTER_NAME_LABEL] == "prod"
            await town.scale("prod", 0)
            await town.until(lambda: not country.machines("prod"))
            assert not tokens(prod)


async def test_nothing_is_left_in_a_workload_cluster_whose_machines_have_joined(town: Town, tmp_path: Path) -> None:
    country = Country(town, tmp_path)
    async with country.elsewhere("prod") as (prod,):
        await joins_by_itself(town, "prod")
        async with town.controllers():
            await country.machine_set("prod", 3)
            await town.until(lambda: country.ready("prod") == 3)
            await town.until(lambda: not tokens(prod))


async def test_no_host_is_made_for_a_cluster_that_can_give_no_token(town: Town, tmp_path: Path) -> None:
    country = Country(town, tmp_path)
    async with country.elsewhere("prod") as (prod,):
        await joins_by_itself(town, "prod")
        await prod.stop()
        async with town.controllers():
            await country.machine_set("prod", 1)

            def said() -> str:
                machine = next(iter(country.machines("prod")), {})
                found = find((machine.get("status") or {}).get("conditions"), "BootstrapDataReady") or {}
                return str(found.get("reason"))

            await town.until(lambda: said() == "WorkloadUnreachable")
            assert country.hosts("prod") == 0
            await prod.start()
            await town.until(lambda: country.ready("prod") == 1)


async def test_tokens_that_outlived_their_machine_are_swept_and_those_of_others_left(
    town: Town, tmp_path: Path
) -> None:
    country = Country(town, tmp_path)
    async with country.elsewhere("prod") as (prod,):
        await joins_by_itself(town, "prod")
        async with KubeClient(await load_kubeconfig([prod.running.kubeconfig_path]), "tests") as client:
            for name, mark in (("aaaaaa", "town"), ("bbbbbb", "another")):
                await client.create(SECRET, an_old_token(name, mark))
        town.options = replace(town.options, management_cluster="town", now=lambda: utc_now() + timedelta(minutes=2))
        async with town.controllers():
            await country.machine_set("prod", 1)
            await town.until(lambda: {each["uid"] for each in tokens(prod)} == {"gone-bbbbbb"})


def an_old_token(name: str, mark: str) -> dict[str, Any]:
    labels = {names.TOKEN_MACHINE_UID_LABEL: f"gone-{name}", names.TOKEN_MANAGED_BY_LABEL: mark}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": names.TOKEN_SECRET_TYPE,
        "metadata": {"name": f"bootstrap-token-{name}", "namespace": "kube-system", "labels": labels},
        "data": {},
    }

"""The Secrets with which a host joins: found again after a crash, nobody else's touched, one token for each host."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from controllers.bootstrap.calls import Refused, data_of
from controllers.bootstrap.credentials import (
    LARGEST,
    Removal,
    ensure,
    is_token_of,
    remove,
    secret_key,
    token_ids,
    token_key,
)
from controllers.kernel.bootstrapping import TOKEN_LIFE, DataAbsent, DataPresent
from controllers.kernel.conditions import parse_time
from controllers.kernel.refs import MACHINE, Key, Ref
from tests.builders.clock import NOW
from tests.controllers.bootstrap.conversations import MACHINE_REF, MARK, Cut, Servers, order

SECRET = secret_key(MACHINE_REF.key)
FIRST, SECOND = token_ids(MACHINE_REF.uid)[:2]
REMOVAL = Removal(MACHINE_REF, SECRET, token_ids(MACHINE_REF.uid))


class Dice:
    """Another secret each time."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        return f"{next(self._numbers):016d}"


def made(servers: Servers, dice: Dice | None = None, at: int = 0, **changes: Any) -> DataPresent | Refused:
    """``at``: minutes from NOW."""
    wanted = replace(order(), **changes)
    return servers.run(ensure(wanted, MARK, dice or Dice(), NOW + timedelta(minutes=at)))


def foreign(name: Key, type_: str) -> dict[str, Any]:
    meta = {"name": name.name, "namespace": name.namespace}
    return {"apiVersion": "v1", "kind": "Secret", "type": type_, "metadata": meta, "data": {}}


def token_of(servers: Servers, token_id: str = FIRST) -> dict[str, str]:
    secret = servers.get("nodes", token_key(token_id))
    assert secret is not None
    return data_of(secret)


def kept(servers: Servers) -> dict[str, str]:
    secret = servers.get("machines", SECRET)
    assert secret is not None
    return data_of(secret)


@given(st.text(min_size=1, max_size=60))
def test_ids_are_those_of_kubernetes_and_the_same_each_time(uid: str) -> None:
    assert token_ids(uid) == token_ids(uid)
    assert all(re.fullmatch("[a-z0-9]{6}", each) for each in token_ids(uid))


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True))
def test_a_secret_name_is_one_and_no_two_machines_share_it(name: str) -> None:
    found = secret_key(Key("default", name)).name
    assert len(found) <= 253
    assert found.endswith("-bootstrap")
    assert secret_key(Key("default", f"{name[:-1]}{'a' if name[-1] != 'a' else 'b'}")).name != found


def test_a_new_machine_gets_both_and_the_host_what_holds_the_token() -> None:
    servers = Servers()
    said = made(servers)
    assert said == DataPresent(FIRST, NOW + TOKEN_LIFE, "one")
    assert kept(servers)["userData"] == f"join with {FIRST}.0000000000000001"
    assert token_of(servers)["token-secret"] == "0000000000000001"
    assert parse_time(token_of(servers)["expiration"]) == NOW + TOKEN_LIFE
    secret = servers.get("machines", SECRET)
    assert secret is not None
    assert secret["metadata"]["labels"][names.CLUSTER_NAME_LABEL] == "prod"
    assert [owner["uid"] for owner in secret["metadata"]["ownerReferences"]] == [MACHINE_REF.uid]


@pytest.mark.parametrize("cut_before", range(4))
def test_a_crash_before_any_call_leaves_what_is_taken_up_again(cut_before: int) -> None:
    servers, dice = Servers(cut_before=cut_before), Dice()
    with pytest.raises(Cut):
        made(servers, dice)
    before = servers.get("machines", SECRET)
    servers.cut_before = None
    assert isinstance(made(servers, dice), DataPresent)
    if before is not None:
        assert kept(servers) == data_of(before)
    assert kept(servers)["token"] == f"{FIRST}.{token_of(servers)['token-secret']}"
    assert len(servers.objects) == 2


def test_a_token_that_got_lost_is_made_again_as_it_was() -> None:
    servers, dice = Servers(), Dice()
    made(servers, dice)
    before = token_of(servers)
    del servers.objects["nodes", token_key(FIRST)]
    made(servers, dice, at=12)
    assert token_of(servers)["token-secret"] == before["token-secret"]
    assert token_of(servers)["expiration"] > before["expiration"]


def test_a_secret_that_got_lost_is_made_again_from_its_token() -> None:
    servers, dice = Servers(), Dice()
    made(servers, dice)
    before = kept(servers)
    del servers.objects["machines", SECRET]
    made(servers, dice)
    assert kept(servers) == before


@pytest.mark.parametrize(("minutes", "renewed"), [(1, False), (10, True), (29, True), (600, True)])
def test_a_token_is_renewed_at_each_look_that_comes_after_ten_minutes(minutes: int, renewed: bool) -> None:
    servers = Servers()
    made(servers)
    said = made(servers, at=minutes)
    assert isinstance(said, DataPresent)
    assert (said.expires == NOW + timedelta(minutes=minutes) + TOKEN_LIFE) is renewed


def test_data_is_made_anew_with_the_same_token_where_what_it_is_made_of_has_changed() -> None:
    servers, dice = Servers(), Dice()
    made(servers, dice)
    token = kept(servers)["token"]
    made(servers, dice, digest="two", render=lambda token, _contents, _founded: f"now with {token}".encode())
    assert kept(servers)["userData"] == f"now with {token}"


def test_an_id_of_somebody_else_is_passed_over() -> None:
    servers = Servers()
    theirs = servers.put("nodes", foreign(token_key(FIRST), names.TOKEN_SECRET_TYPE))
    said = made(servers)
    assert isinstance(said, DataPresent)
    assert said.token_id == SECOND
    assert servers.get("nodes", token_key(FIRST)) == theirs
    servers.run(remove(REMOVAL))
    assert servers.objects == {("nodes", token_key(FIRST)): theirs}


def test_where_all_ids_are_taken_it_is_said() -> None:
    servers = Servers()
    for token_id in token_ids(MACHINE_REF.uid):
        servers.put("nodes", foreign(token_key(token_id), names.TOKEN_SECRET_TYPE))
    said = made(servers)
    assert isinstance(said, Refused)
    assert said.reason == "SecretConflict"
    assert servers.get("machines", SECRET) is None


@pytest.mark.parametrize("type_", ["Opaque", names.BOOTSTRAP_SECRET_TYPE])
def test_a_secret_of_somebody_else_is_never_touched(type_: str) -> None:
    servers = Servers()
    theirs = servers.put("machines", foreign(SECRET, type_))
    said = made(servers)
    assert isinstance(said, Refused)
    assert said.reason == "SecretConflict"
    assert str(SECRET) in said.message
    servers.run(remove(REMOVAL))
    assert servers.objects == {("machines", SECRET): theirs}


def test_a_namesake_that_came_later_gets_nothing_of_the_first() -> None:
    """A Machine of the same name and another UID: the Secret is not its own until the first one's is collected."""
    servers = Servers()
    made(servers)
    later = Ref(MACHINE, MACHINE_REF.key, "uid-of-another")
    said = servers.run(ensure(order(later), MARK, Dice(), NOW))
    assert isinstance(said, Refused)
    servers.run(remove(Removal(later, SECRET, token_ids(later.uid))))
    assert len(servers.objects) == 2


def test_what_is_too_large_is_refused_before_anything_is_made() -> None:
    servers = Servers()
    said = made(servers, render=lambda _token, _contents, _founded: b"x" * (LARGEST + 1))
    assert isinstance(said, Refused)
    assert said.reason == "DataTooLarge"
    assert not servers.objects


@pytest.mark.parametrize("cut_before", range(6))
def test_removal_may_be_cut_off_anywhere_and_begun_again(cut_before: int) -> None:
    servers = Servers()
    made(servers)
    servers.calls.clear()
    servers.cut_before = cut_before
    try:
        servers.run(remove(REMOVAL))
    except Cut:
        token = servers.get("nodes", token_key(FIRST))
        secret = servers.get("machines", SECRET)
        assert token is not None or secret is None, "a Secret without its token is found by nobody"
    servers.cut_before = None
    assert servers.run(remove(REMOVAL)) == DataAbsent()
    assert not servers.objects


@given(st.lists(st.uuids().map(str), min_size=2, max_size=8, unique=True))
def test_no_two_hosts_share_a_token(uids: list[str]) -> None:
    servers, dice = Servers(), Dice()
    for number, uid in enumerate(uids):
        servers.run(ensure(order(Ref(MACHINE, Key("default", f"m-{number}"), uid)), MARK, dice, NOW))
    tokens = [data_of(obj)["token"] for (place, _), obj in servers.objects.items() if place == "machines"]
    assert len(set(tokens)) == len(uids)
    owners = [uid for uid in uids if sum(is_token_of(obj, uid) for obj in servers.objects.values()) == 1]
    assert owners == uids

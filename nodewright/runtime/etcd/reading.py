"""One look at a cluster's etcd, and one removal: a conversation with its members from the outside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime

from controllers.kernel.actions import RemoveEtcdMember
from controllers.kernel.etcd import EtcdHost, EtcdMember, EtcdMembers, EtcdRead, EtcdUnread
from nodewright.runtime.etcd.gateway import Gateway, GatewayError, Listed, Status, url_of

CLIENT_PORT = 2379
"""Where kubeadm has etcd listen for clients."""
MOST_ERRORS = 3


class RemovalRefused(Exception):
    """etcd is not as it was when the removal was decided, or it does not take it now."""


class NoMember(Exception):
    """No member is there that could be asked for a snapshot, and why."""


async def read(gateway: Gateway, hosts: Iterable[EtcdHost], now: datetime, port: int = CLIENT_PORT) -> EtcdRead:
    """Never raises GatewayError: members that do not answer are reported. Every member is asked for itself."""
    found, errors = await _list(gateway, hosts, port)
    if found is None:
        return EtcdUnread("; ".join(errors[:MOST_ERRORS]) or "no host has an address yet")
    listed, url = found
    statuses = await asyncio.gather(*(_status(gateway, member) for member in listed))
    try:
        alarms = await gateway.alarms(url)
    except GatewayError:
        alarms = {}
    pairs = zip(listed, statuses, strict=True)
    return EtcdMembers(tuple(_judged(member, reported, alarms.get(member.id, ())) for member, reported in pairs), now)


async def remove(
    gateway: Gateway, hosts: Iterable[EtcdHost], action: RemoveEtcdMember, port: int = CLIENT_PORT
) -> None:
    """Raises RemovalRefused. The list has to be the one that was decided on, confirmed by a quorum, and those that were
    reckoned with have to answer at this moment."""
    errors: list[str] = []
    for url in _urls(hosts, port):
        try:
            listed = await gateway.members(url, agreed=True)
        except GatewayError as error:
            errors.append(f"{url}: {error}")
            continue
        if frozenset(member.id for member in listed) != action.members:
            raise RemovalRefused("etcd has other members than when this was decided")
        needed = [member for member in listed if member.id in action.healthy]
        for member, reported in zip(needed, await asyncio.gather(*(_status(gateway, m) for m in needed)), strict=True):
            if not isinstance(reported, Status) or not reported.leader:
                raise RemovalRefused(f"member {member.name} does not work any more")
        through = next((member.url for member in needed if member.url), url)
        try:
            await gateway.remove(through, action.member)
        except GatewayError as error:
            raise RemovalRefused(f"{through}: {error}") from None
        return
    raise RemovalRefused("; ".join(errors[:MOST_ERRORS]) or "no host has an address")


async def best_member(gateway: Gateway, hosts: Iterable[EtcdHost], port: int = CLIENT_PORT) -> tuple[str, Status]:
    """URL and status of a voter that works and has the newest data; the leader last, which has most to do.

    Raises NoMember. A learner gives no snapshot.
    """
    found, errors = await _list(gateway, hosts, port)
    if found is None:
        raise NoMember("; ".join(errors[:MOST_ERRORS]) or "no host has an address yet")
    voters = [member for member in found[0] if member.url and not member.learner]
    reported = await asyncio.gather(*(_status(gateway, member) for member in voters))
    works = [
        (status.member != status.leader, -number, member.url, status)
        for number, (member, status) in enumerate(zip(voters, reported, strict=True))
        if isinstance(status, Status) and status.leader and status.member == member.id
    ]
    if not works:
        raise NoMember("none of its voters works")
    *_, url, status = max(works, key=lambda each: each[:2])
    return url, status


async def _list(
    gateway: Gateway, hosts: Iterable[EtcdHost], port: int
) -> tuple[tuple[tuple[Listed, ...], str] | None, list[str]]:
    """The list as a quorum confirms it; where there is none, as the first member knows it that answers."""
    urls, errors = _urls(hosts, port), []
    for agreed in (True, False):
        for url in urls:
            try:
                return (await gateway.members(url, agreed=agreed), url), []
            except GatewayError as error:
                errors.append(f"{url}: {error}")
    return None, errors


def _urls(hosts: Iterable[EtcdHost], port: int) -> list[str]:
    return [url for host in hosts if (url := url_of(host.address, port))]


async def _status(gateway: Gateway, member: Listed) -> Status | str:
    if not member.url:
        return "it has not started yet" if not member.name else "it tells no address with TLS"
    try:
        return await gateway.status(member.url)
    except GatewayError as error:
        return str(error)


def _judged(member: Listed, reported: Status | str, alarms: tuple[str, ...]) -> EtcdMember:
    """Healthy: it answers itself, under its own id, and knows a leader."""
    if isinstance(reported, str):
        return EtcdMember(member.id, member.name, member.learner, healthy=False, alarms=alarms, why=reported)
    why = ""
    if reported.member != member.id:
        why = "another member answers at its address"
    elif not reported.leader:
        why = "it knows no leader"
    elif "CORRUPT" in alarms:
        why = "its database is corrupt"
    return EtcdMember(
        member.id, member.name, member.learner, not why, alarms, reported.db_size_bytes, why, reported.version
    )

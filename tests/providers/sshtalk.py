"""One conversation with a host, from its claim to its release, and what every host answers, fake or real."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from providers.ssh import remote
from providers.ssh.claims import Claim

Ask = Callable[[str], Awaitable[Mapping[str, str]]]
"""Runs a script on the host as root."""
Do = Callable[[], Awaitable[None]]
STEPS = b"#!/bin/sh\ntrue\n"
MINE = Claim("aaaaaaaaaaaa", "uid-1", "ns", "m-1", "here", "h1", "2026-01-01T00:00:00+00:00", kubelet="1.36.3")
OTHER = Claim("bbbbbbbbbbbb", "uid-2", "ns", "m-2", "here", "h1", "2026-01-01T00:00:00+00:00")
_FREE = {"boot", "hostname", "time"}
EXPECTED: list[tuple[str, set[str]]] = [
    ("a look at a free host", _FREE),
    ("steps without a claim", {"gone"}),
    ("its claim", {"claim"}),
    ("the same claim again", {"claim"}),
    ("the claim of another one", {"claim"}),
    ("a change before it has joined", {"joining"}),
    ("steps before it can join", {"preparing"}),
    ("those steps again", {"preparing"}),
    ("such steps of another one", {"gone"}),
    ("its steps", {"started"}),
    ("its steps again", {"started"}),
    ("steps of another one", {"gone"}),
    ("steps before it can join, too late", {"gone"}),
    ("a look at a host that has joined", _FREE | {"claim", "started", "kubelet", "version"}),
    ("freeing a host that is claimed", {"claimed"}),
    ("a release by another one", {"gone"}),
    ("its release", {"releasing"}),
    ("a look once it is clean", _FREE),
    ("its release again", {"gone"}),
    ("a claim after that", {"claim"}),
]
"""What is asked, and the words that the answer has."""


async def talk(ask: Ask, *, joins: Do, cleans: Do) -> list[tuple[str, set[str]]]:
    """``joins``: what a host looks like once its steps are done; ``cleans``: waits until its release is done."""
    names = iter([name for name, _ in EXPECTED])
    heard: list[tuple[str, set[str]]] = []

    async def say(script: str) -> Mapping[str, str]:
        answer = await ask(script)
        heard.append((next(names), set(answer)))
        return answer

    await say(remote.look())
    await say(remote.start(MINE.id, STEPS))
    for claim in (MINE, MINE, OTHER):
        answer = await say(remote.claim(claim.id, claim.text()))
        assert Claim.read(answer["claim"]) == MINE
    await say(remote.change(MINE.id, MINE.text(), "h2", STEPS))
    for claim_id in (MINE.id, MINE.id, OTHER.id):
        await say(remote.prepare(claim_id, STEPS))
    for claim_id in (MINE.id, MINE.id, OTHER.id):
        await say(remote.start(claim_id, STEPS))
    await say(remote.prepare(MINE.id, STEPS))
    await joins()
    await say(remote.look())
    await say(remote.free())
    await say(remote.release(OTHER.id, "Leave"))
    await say(remote.release(MINE.id, "Leave"))
    await cleans()
    await say(remote.look())
    await say(remote.release(MINE.id, "Leave"))
    answer = await say(remote.claim(OTHER.id, OTHER.text()))
    assert Claim.read(answer["claim"]) == OTHER
    return heard

"""What was seen of the hosts of a pool in one look, and what follows from it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from api.secrets import HIDDEN, without_secrets
from api.sshhostpool import SSHHost, SSHHostReboot
from providers.base.contract import Address, Host, HostState
from providers.ssh import reboots
from providers.ssh.claims import Claim

MOST_TRIES = 10
"""Tries of one step after which a host counts as failed. The pauses double from 5 s to 60 s: about 6 min."""
STOPPED = frozenset({"inactive", "failed"})
"""States of a unit that nobody starts again: one that ends by itself is "activating" between two tries."""
_VERSION = re.compile(r"v([0-9][0-9A-Za-z.+-]{0,31})")
_TOKEN = re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b")
"""A bootstrap token (kubeadm)."""

CLOCK_REPORTED, CLOCK_REFUSED = 60.0, 300.0
"""Seconds that a clock is wrong from which it is reported, and from which no Machine gets the host: certificates of a
control plane begin 5 min before they are made (kubeadm), and a host whose clock is further behind trusts none."""

State = Literal["Free", "Claimed", "Cleaning", "Quarantined", "Unreachable"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One host. ``trouble``: why it gave no answer; its claim is then the one that is remembered."""

    host: SSHHost
    hostname: str = ""
    claim: Claim | None = None
    foreign: bool = False
    """There is a claim, and it is none of ours to read."""
    quarantine: str = ""
    releasing: bool = False
    started: bool = False
    changing: str = ""
    """Hash of the request that it is brought to."""
    failure: str = ""
    trouble: str = ""
    kubelet: str = ""
    """As systemd calls its state."""
    version: str = ""
    """That the program of the kubelet tells, without v."""
    clock: float = 0.0
    """Seconds that its clock is ahead of ours, as its answer came; negative: behind."""
    boot: str = ""
    """Its boot id, as it was last seen."""
    reboot: SSHHostReboot | None = None
    """The last one that was begun for its claim."""
    repair: str = ""
    """What was done about a kubelet that does not run, for people."""
    silent: bool = False
    """Its trouble is that nothing reaches it, or that it can't run a command: it hangs, as far as anybody can tell."""

    @property
    def clock_fault(self) -> str:
        """ "" if it is right. The words stay the same while it stays wrong: a status is not written at each look."""
        off = abs(self.clock)
        if off <= CLOCK_REPORTED:
            return ""
        bounds = (("a day", 86_400.0), ("an hour", 3_600.0), ("5 min", 300.0), ("a minute", 60.0))
        bound = next(name for name, least in bounds if off > least)
        way = "ahead" if self.clock > 0 else "behind"
        return f"its clock is more than {bound} {way}: set up chrony or systemd-timesyncd"

    @property
    def drift(self) -> str:
        """What somebody has done to a kubelet that was as asked for; "" if nothing."""
        if self.claim is None or self.releasing or self.changing:
            return ""
        if self.kubelet in STOPPED:
            text = f"its kubelet does not run ({self.kubelet}): somebody stopped it, or it failed; see its journal"
            return f"{text}; {self.repair}" if self.repair else text
        wanted = self.claim.kubelet
        if wanted and self.version and self.version != wanted:
            return f"its kubelet is of version {self.version}, and {wanted} was installed: somebody has changed it"
        return ""

    @property
    def is_stopped(self) -> bool:
        """It answers, has joined, nothing is being done to it, and its kubelet does not run."""
        return not self.trouble and self.kubelet in STOPPED and bool(self.drift)

    @property
    def is_unfinished(self) -> bool:
        """It was claimed, and its steps were never started: the controllers ended, or the connection, in between."""
        if self.claim is None or not self.claim.steps or self.trouble:
            return False
        return not (self.started or self.releasing or self.changing or self.kubelet)

    @property
    def may_be_claimed(self) -> bool:
        """Nobody has it, and a kubelet would find the certificates of its cluster valid."""
        return self.state == "Free" and abs(self.clock) <= CLOCK_REFUSED

    @property
    def state(self) -> State:
        if self.trouble:
            return "Unreachable"
        if self.claim is not None or self.foreign:
            return "Cleaning" if self.releasing else "Claimed"
        return "Quarantined" if self.quarantine else "Free"


def seen(host: SSHHost, answer: Mapping[str, str]) -> Seen:
    """From the words of ``remote.look`` or ``remote.claim``."""
    claim = Claim.read(answer.get("claim", ""))
    return Seen(
        host,
        hostname=answer.get("hostname", "")[:253],
        claim=claim,
        foreign=claim is None and "claim" in answer,
        quarantine=answer["quarantine"][:1000] or "without a reason" if "quarantine" in answer else "",
        releasing="releasing" in answer,
        started=claim is not None and answer.get("started") == claim.id,
        changing=answer.get("changing", "").strip()[:64],
        failure=failure_of(answer),
        kubelet=answer.get("kubelet", "").strip()[:32],
        version=found[1] if (found := _VERSION.search(answer.get("version", "")[:64])) else "",
        boot=answer.get("boot", "").strip()[:64],
    )


def clock_of(answer: Mapping[str, str], now: float) -> float:
    """Seconds that the clock of a host which has just answered is ahead. 0.0 if it gave none.

    ``time`` 1800007200 at ``now`` 1800000000.0 gives 7200.0.
    """
    text = answer.get("time", "")
    return float(text) - now if re.fullmatch(r"[0-9]{1,15}", text) else 0.0


def host_of(pool: str, found: Seen) -> Host | None:
    """None if it is no Machine's. A host that does not answer is shown as it was last: nobody knows better."""
    claim = found.claim
    if claim is None:
        return None
    state = _host_state(found)
    names = (Address("Hostname", found.hostname),) if found.hostname else ()
    return Host(
        id=f"{found.host.name}/{claim.id}",
        machine_uid=claim.machine_uid,
        name=found.host.name,
        provider_id=f"ssh:///{pool}/{found.host.name}/{claim.id}",
        state=state,
        spec_hash=f"on its way to {found.changing}" if found.changing else claim.spec_hash,
        addresses=(*names, Address(_type_of(found.host.address), found.host.address)),
        failure=found.failure if state is not HostState.UPDATING else "",
        failure_domain=found.host.zone or "",
        created_at=claim.made(),
        management_cluster=claim.management_cluster,
        rebooted=reboots.done(found.reboot, found.boot),
        drift=found.drift,
    )


def _host_state(found: Seen) -> HostState:
    if found.releasing:
        return HostState.DELETING
    if found.changing:
        return HostState.UPDATING
    if found.is_unfinished:
        return HostState.UNFINISHED
    return HostState.FAILED if found.failure else HostState.RUNNING


def one_each(found: Iterable[Seen], remembered: Mapping[str, Claim]) -> tuple[Seen, ...]:
    """If several hosts claim one Machine, only one is its host: the one that the pool's status records,
    else the one that was claimed first. The claims of others count as foreign: a host that somebody else is root on
    may say what it likes.
    """
    every = list(found)
    mine: dict[str, Seen] = {}
    for one in every:
        if one.claim is None:
            continue
        other = mine.get(one.claim.machine_uid)
        if other is None or _rank(one, remembered) < _rank(other, remembered):
            mine[one.claim.machine_uid] = one
    return tuple(
        one if one.claim is None or mine[one.claim.machine_uid] is one else replace(one, claim=None, foreign=True)
        for one in every
    )


def _rank(one: Seen, remembered: Mapping[str, Claim]) -> tuple[bool, str, str]:
    assert one.claim is not None
    known = remembered.get(one.host.name)
    return known is None or known.id != one.claim.id, one.claim.created_at, one.host.name


def status_of(found: Iterable[Seen], before: Mapping[str, Any]) -> dict[str, Any]:
    """The patch of the pool's status; ``before``: the status as it is. {} where nothing has changed."""
    every = list(found)
    hosts = {one.host.name: _shown(one) for one in every}
    kept = before.get("hosts") or {}
    changes: dict[str, Any] = {
        name: _difference(kept.get(name) or {}, now) for name, now in hosts.items() if kept.get(name) != now
    }
    changes |= {name: None for name in kept if name not in hosts}
    states = [one.state for one in every]
    counts = {
        "total": len(every),
        "free": states.count("Free"),
        "claimed": states.count("Claimed") + states.count("Cleaning"),
        "quarantined": states.count("Quarantined"),
        "unreachable": states.count("Unreachable"),
    }
    patch = {name: number for name, number in counts.items() if before.get(name) != number}
    return {**patch, "hosts": changes} if changes else patch


def _shown(one: Seen) -> dict[str, Any]:
    reason = one.trouble or (one.quarantine if one.state == "Quarantined" else "")
    reason = reason or one.drift or one.clock_fault
    reason = reason or ("its claim is not one of ours, or of a Machine that has another host" if one.foreign else "")
    shown: dict[str, Any] = {"state": one.state}
    if reason:
        shown["reason"] = without_secrets(reason)[:1024]
    if one.claim is not None:
        shown |= {"machine": f"{one.claim.namespace}/{one.claim.machine}", "claim": one.claim.text()}
        if one.reboot is not None and one.reboot.claim == one.claim.id:
            shown["reboot"] = reboots.shown(one.reboot)
    return shown


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(before.keys() - now.keys()), **now}


def failure_of(answer: Mapping[str, str], least: int = MOST_TRIES) -> str:
    """Of ``failure`` as the script writes it: exit status, tries, then "4/9 install kubelet 1.36.1". "" below ``least``
    tries.
    """
    code, _, rest = answer.get("failure", "").partition(" ")
    tries, _, step = rest.partition(" ")
    if not tries.isdecimal() or int(tries) < least:
        return ""
    lines = [_masked(line) for line in answer.get("log", "").splitlines()[-5:]]
    return f"step {step} failed with {code}, {tries} times: {' | '.join(lines)}"[:1000]


def gave_up(answer: Mapping[str, str]) -> str:
    """Of ``gave-up`` as the script writes it: which step failed, and to what the host went back. "" if it did not."""
    lines = [_masked(line) for line in answer.get("gave-up", "").splitlines()[:8]]
    return " | ".join(line for line in lines if line)[:1000]


def _masked(line: str) -> str:
    return _TOKEN.sub(HIDDEN, without_secrets(line))


def _type_of(address: str) -> str:
    return "InternalIP" if re.fullmatch(r"[0-9.]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*", address) else "InternalDNS"

"""What a host has to be for steps to run on it, as found in one look at it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SCRIPT = """\
# check
ps -o comm= -p 1 2>/dev/null | tell init
{ . /etc/os-release && printf '%s %s' "${ID-}" "${VERSION_ID-}"; } 2>/dev/null | tell system
uname -m | tell machine
date +%s | tell time
awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo | tell memory
df -Pk /var/lib | awk 'NR == 2 { print int($4 / 1024) }' | tell disk
for program in flock base64 systemctl sha256sum timeout awk; do
  command -v "$program" > /dev/null || echo "$program"
done | tell missing
command -v curl > /dev/null || command -v wget > /dev/null || echo curl | tell fetcher
[ ! -e /etc/kubernetes/kubelet.conf ] || echo yes | tell joined
! systemctl is-active --quiet kubelet.service || echo yes | tell kubelet
[ ! -e "$home/claim" ] || sed -n 2p "$home/claim" | tell claim
[ ! -e "$home/quarantine" ] || head -c 1000 "$home/quarantine" | tell quarantine
"""
CLOCK = 60.0
"""Seconds that the clock may be wrong: tokens and certificates are good from now on."""
LEAST_MEMORY, LEAST_DISK = 700, 2048
"""MiB. A kubelet and containerd alone take about 300; their programs and one image about 1000 of the disk."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``problem``: what is wrong; ``remedy``: what a person does about it."""

    problem: str
    remedy: str


def findings(answers: Mapping[str, str], now: float) -> tuple[Finding, ...]:
    """What is wrong with a host that answered ``answers``. ``now``: seconds since 1970, of the clock that is right."""
    found = []
    init, system = answers.get("init", ""), answers.get("system", "")
    if init != "systemd":
        found.append(Finding(f"process 1 is {init or 'unknown'}", "steps run as units: install a system with systemd"))
    if missing := answers.get("missing", "").split():
        found.append(Finding(f"{', '.join(missing)} not found", f"install them on {system or 'the host'}"))
    if "fetcher" in answers:
        found.append(Finding("neither curl nor wget is there", "install one; archives are fetched with it"))
    off = _number(answers.get("time")) - now
    if answers.get("time") and abs(off) > CLOCK:
        way = "ahead" if off > 0 else "behind"
        found.append(Finding(f"its clock is {abs(off):.0f} s {way}", "set up chrony or systemd-timesyncd"))
    for name, least, what in (("memory", LEAST_MEMORY, "of memory"), ("disk", LEAST_DISK, "free below /var/lib")):
        if answers.get(name) and _number(answers[name]) < least:
            found.append(Finding(f"{answers[name][:12]} MiB {what}", f"a kubelet needs {least} MiB at least"))
    if "claim" not in answers and ("joined" in answers or "kubelet" in answers):
        text = "it is a Node already, and no Machine's"
        found.append(Finding(text, "take it out of the pool, or take Kubernetes off it: kubeadm reset"))
    if "quarantine" in answers:
        why = " ".join(answers["quarantine"].split())[:300]
        found.append(Finding(f"quarantined: {why}", "see to it, then `nodewright hosts release`"))
    return tuple(found)


def _number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0

"""Whether a host can be brought to another request as it stands, and what its answer means. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from providers.base.contract import HostRequest, InProgress, NeedsReplacement, UpdateAnswer, Updated
from providers.base.errors import ErrorClass, ProviderError
from providers.ssh.claims import Claim
from providers.ssh.looks import failure_of, gave_up

_POLL = 3.0
"""Seconds between two looks at a host that is being changed."""


def refusal(request: HostRequest, claim: Claim) -> str:
    """Why another host has to take over; "" if this one can be changed."""
    if not request.kept_hash or claim.kept_hash != request.kept_hash:
        return "more than the kubelet's version is different, and that alone is changed on a host"
    return "" if request.upgrade.script else request.upgrade.why_not


def answer_of(answers: Mapping[str, str]) -> UpdateAnswer:
    """From the words of ``remote.change``. Raises ProviderError (Conflict) if the host was given back meanwhile."""
    if "gone" in answers:
        raise ProviderError(ErrorClass.CONFLICT, "the host was given back meanwhile")
    if "changed" in answers:
        return Updated()
    if "joining" in answers:
        return NeedsReplacement("the host has not joined its cluster")
    if "busy" in answers:
        return InProgress(_POLL, "the steps for an earlier version of its Machine have to end first")
    if "gave-up" in answers:
        return InProgress(_POLL, gave_up(answers) or "the host went back", failed=True)
    failure = failure_of(answers, least=1)
    progress = " ".join(answers.get("progress", "").split())[:200]
    return InProgress(_POLL, failure or (f"step {progress}" if progress else ""))

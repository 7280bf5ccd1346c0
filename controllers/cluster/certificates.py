"""Are the Cluster's certificates sound, and until when? And: the kubeconfig is renewed when it is time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from api import names
from api.conditions import ClusterCondition, Reason
from controllers.cluster.observe import Observed
from controllers.kernel.actions import Action, Event, RenewKubeconfig
from controllers.kernel.certificates import EXPIRING, Certificate, CertificateKind, CertificatesRead, CertificatesUnread
from controllers.kernel.conditions import Condition, find
from controllers.kernel.node_policy import endpoint_of
from controllers.kernel.refs import key_of

AGAIN = 60.0
"""Seconds until a reconcile looks again at what was read: Secrets are not watched."""
SOON = 2.0
"""The same while the first read is under way."""
_MOST = 4
_MOST_TEXT = 1024
_VALID, _EXPIRING = ClusterCondition.CERTIFICATES_VALID, ClusterCondition.CERTIFICATES_EXPIRING
_CURE: Mapping[CertificateKind, str] = {
    CertificateKind.KUBECONFIG: "renew it: it was not made by these controllers, or they may not write it",
    CertificateKind.CLUSTER_CA: "replace it (docs/tasks/cluster-certificates.md)",
    CertificateKind.ETCD_CA: "replace it (docs/tasks/cluster-certificates.md)",
    CertificateKind.FRONT_PROXY_CA: "replace it (docs/tasks/cluster-certificates.md)",
    CertificateKind.API_SERVER: f"upgrade its Machine, or annotate it with {names.RENEW_CERTIFICATES}",
    CertificateKind.ETCD: f"upgrade its Machine, or annotate it with {names.RENEW_CERTIFICATES}",
}


OWNED = frozenset({str(_VALID), str(_EXPIRING)})


def is_unknown(observed: Observed) -> bool:
    """Nothing was read since the start or the last change: what was said before stays."""
    return isinstance(observed.certificates, CertificatesUnread)


def actions(observed: Observed) -> list[Action]:
    """The renewal, if it is due."""
    read = observed.certificates
    if not isinstance(read, CertificatesRead) or not read.renewal or observed.deleting or observed.paused:
        return []
    why = f"the kubeconfig of Cluster {key_of(observed.cluster)} is made anew: {read.renewal}"
    return [RenewKubeconfig(observed.ref, endpoint_of(observed.cluster), why)]


def look_again(observed: Observed) -> float:
    """Seconds until the next look, 0 if there is nothing to look at."""
    read = observed.certificates
    if read is None:
        return 0.0
    waits = isinstance(read, CertificatesUnread) and read.finding_out
    return SOON if waits or (isinstance(read, CertificatesRead) and read.renewal) else AGAIN


def conditions(observed: Observed) -> list[Condition]:
    """What was said before stays while nothing is known."""
    read = observed.certificates
    if read is None or (isinstance(read, CertificatesUnread) and read.finding_out):
        return []
    if isinstance(read, CertificatesUnread):
        return [Condition(str(_VALID), "Unknown", str(Reason.CERTIFICATES_UNKNOWN), read.why[:_MOST_TEXT])]
    if not read.certificates and not read.faults:
        return []
    found = [_valid(read, observed.now)]
    expiring = _expiring(observed, read)
    return [*found, expiring] if expiring is not None else found


def news(observed: Observed, decided: list[Condition]) -> list[Action]:
    """An Event when one begins to expire, and when one can't be used any more."""
    found: list[Action] = []
    before = observed.status.get("conditions")
    for condition in decided:
        bad = (condition.type, condition.status) in ((str(_VALID), "False"), (str(_EXPIRING), "True"))
        old = find(before, condition.type) if bad else None
        if bad and (old is None or old.get("status") != condition.status):
            found.append(Event(observed.ref, "Warning", condition.reason, condition.message))
    return found


def _valid(read: CertificatesRead, now: datetime) -> Condition:
    ended = [each for each in read.certificates if each.ends <= now]
    if read.faults:
        text = "; ".join(read.faults[:_MOST])
        return Condition(str(_VALID), "False", str(Reason.INVALID_CERTIFICATE_AUTHORITY), text[:_MOST_TEXT])
    if ended:
        return Condition(str(_VALID), "False", str(Reason.CERTIFICATE_EXPIRED), _listed(ended, "ended"))
    if not read.certificates:
        return Condition(str(_VALID), "True", str(Reason.CERTIFICATES_VALID))
    first = min(read.certificates, key=_end)
    text = f"the first to end, on {first.ends:%Y-%m-%d}: {first.holder}"
    return Condition(str(_VALID), "True", str(Reason.CERTIFICATES_VALID), text[:_MOST_TEXT])


def _expiring(observed: Observed, read: CertificatesRead) -> Condition | None:
    """Only there while there are some, and after."""
    left = {each: each.ends - observed.now for each in read.certificates}
    soon = [each for each, time in left.items() if timedelta(0) < time <= EXPIRING[each.kind]]
    held_up = f"the kubeconfig is to be renewed, {read.held_up}" if read.held_up else ""
    text = "; ".join(part for part in (held_up, _listed(soon, "ends")) if part)[:_MOST_TEXT]
    if text:
        return Condition(str(_EXPIRING), "True", str(Reason.CERTIFICATES_EXPIRING), text)
    if find(observed.status.get("conditions"), str(_EXPIRING)):
        return Condition(str(_EXPIRING), "False", str(Reason.CERTIFICATES_VALID))
    return None


def _listed(certificates: list[Certificate], ends: str) -> str:
    parts = [
        f"{each.holder} {ends} on {each.ends:%Y-%m-%d}: {_CURE[each.kind]}"
        for each in sorted(certificates, key=_end)[:_MOST]
    ]
    more = len(certificates) - len(parts)
    return "; ".join([*parts, *([f"{more} more"] if more > 0 else [])])[:_MOST_TEXT]


def _end(certificate: Certificate) -> tuple[datetime, str]:
    return certificate.ends, certificate.holder

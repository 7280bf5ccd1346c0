"""Why a host can't join, in a reason and in words: the report of a failed step → what its Machine's condition says.

The reason is what alerts and health checks match, so it is of a small closed set; the message begins with the step and
the cause, and ends with the last lines of its log.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from api.conditions import Reason
from controllers.kernel.host_report import Report

LONGEST_MESSAGE = 1024
"""Characters of the words for a failure, the end of its log included."""
TIMED_OUT = 124
"""Exit status of ``timeout`` (coreutils) for a program that took too long."""
_FETCHING = frozenset({"archive", "binary", "download", "packages", "repository"})
_WITHIN = re.compile(r"^it did not end within ([0-9]{1,9}) s$", re.MULTILINE)
_SERVER = re.compile(r"https?://(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Failure:
    """``reason``: of the condition NodeJoined. ``cause``: one clause for people; "" if the log has to speak."""

    reason: Reason
    cause: str = ""


def classify(report: Report) -> Failure:
    """The first row of the tables that fits what the step was and what it has printed; total over any report."""
    rows = _JOIN if _joins(report) else _INSTALL
    matches = ((answer, pattern.search(report.log)) for pattern, answer in rows)
    match = next((answer(report, found) for answer, found in matches if found is not None), None)
    if report.code == TIMED_OUT and (match is None or match.reason == Reason.MIRROR_UNREACHABLE):
        return _late(report)
    if match is not None:
        return match
    if _joins(report):
        return Failure(Reason.JOIN_FAILED)
    if report.action == "present":
        return Failure(Reason.VERSION_MISMATCH)
    return Failure(Reason.STEP_FAILED)


def in_words(report: Report) -> str:
    """``step 8/13 'install kubelet 1.36.9': no kubelet of 1.36.9 in the repository: curl: (22) …``."""
    failure = classify(report)
    again = f", tried {report.attempt} times" if report.attempt > 1 else ""
    head = f"step {report.step}/{report.steps} '{report.name}': {failure.cause or f'failed with {report.code}'}{again}"
    lines = [" ".join(line.split()) for line in report.log.splitlines()]
    tail = " | ".join(line for line in lines if line)
    left = LONGEST_MESSAGE - len(head) - 2
    if not tail or left < len("…"):
        return head[:LONGEST_MESSAGE]
    return f"{head}: {tail if len(tail) <= left else '…' + tail[-(left - 1) :]}"


def _joins(report: Report) -> bool:
    return report.action == "join" or report.name.startswith("join the cluster")


def _says(reason: Reason, cause: str) -> Callable[[Report, re.Match[str]], Failure]:
    return lambda _report, _found: Failure(reason, cause)


def _late(report: Report) -> Failure:
    """The script says after how many seconds it has ended a step; what was fetched last stands in the log before."""
    seconds = _WITHIN.findall(report.log)
    text = f"did not end within {seconds[-1]} s" if seconds else "did not end in the time that it has"
    if _joins(report):
        return Failure(Reason.JOIN_FAILED, text)
    if report.action not in _FETCHING:
        return Failure(Reason.STEP_FAILED, text)
    servers = _SERVER.findall(report.log)
    asked = f"is {servers[-1]}" if servers else "are the host's repositories"
    return Failure(Reason.MIRROR_UNREACHABLE, f"{text}; {asked} reachable from the host?")


def _none_in_repository(report: Report, _found: re.Match[str]) -> Failure:
    return Failure(Reason.PACKAGE_UNAVAILABLE, f"{_what(report)} in the repository")


def _what(report: Report) -> str:
    """``no kubelet of 1.36.9``: the program and version that the step's name has."""
    words = report.name.split()
    if len(words) >= 3 and words[-1][:1].isdigit():
        return f"no {' '.join(words[1:-1])} of {words[-1]}"
    return f"no {' '.join(words[1:])}" if len(words) > 1 else "it is not"


def _preflight(_report: Report, found: re.Match[str]) -> Failure:
    checks = dict.fromkeys(re.findall(r"\[ERROR ([A-Za-z0-9._/-]{1,64})\]", found.string))
    return Failure(Reason.PREFLIGHT_FAILED, f"checks of kubeadm failed: {', '.join(list(checks)[:5])}")


Row = tuple[re.Pattern[str], Callable[[Report, re.Match[str]], Failure]]


def _rows(*rows: tuple[str, Callable[[Report, re.Match[str]], Failure]]) -> tuple[Row, ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), answer) for pattern, answer in rows)


_INSTALL = _rows(
    # what was fetched is not what it should be: curl and sha256sum, apt, dnf
    (
        r"is not what its checksum says|hash sum mismatch|checksum (?:doesn't|does not) match|digest mismatch"
        r"|FAILED open or read|computed checksum did NOT match",
        _says(Reason.CHECKSUM_MISMATCH, "what was fetched is not what its checksum says"),
    ),
    (
        r"NO_PUBKEY|EXPKEYSIG|BADSIG|is not signed|GPG check FAILED|Public key for .* is not installed"
        r"|signatures? (?:couldn't|could not) be verified",
        _says(Reason.CHECKSUM_MISMATCH, "the repository's signature can't be verified"),
    ),
    # the repository answers, and has none: curl, apt, dnf
    (
        r"curl: \(22\)[^\n]*\b(?:404|410)\b|HTTP Error 4(?:04|10)|unable to locate package"
        r"|version '[^'\n]*' for '[^'\n]*' was not found|has no installation candidate|no match for argument"
        r"|unable to find a match|nothing provides|no package [^\n]* available|does not have a release file"
        r"|status code: 404|\b404 +not found",
        _none_in_repository,
    ),
    # nobody answers, or not to us: curl's exit codes 5 6 7 22 28 35 51 52 56 60 and what apt and dnf make of the same
    (
        r"curl: \((?:5|6|7|18|22|28|35|51|52|55|56|60|77|92)\)|could not resolve|couldn't resolve"
        r"|temporary failure"
        r"|curl error \((?:5|6|7|28|35|52|56|60)\)|name or service not known"
        r"|unable to connect|could not connect|connection (?:refused|timed out|reset)"
        r"|no route to host|network is unreachable|failed to fetch|cannot download|certificate verif|timed out"
        r"|curl: not found|curl: command not found",
        _says(Reason.MIRROR_UNREACHABLE, "the repository or mirror can't be reached"),
    ),
    (r"can't be fetched", _says(Reason.MIRROR_UNREACHABLE, "the repository or mirror can't be reached")),
    # what the image has
    (r" is of version \S+, not ", _says(Reason.VERSION_MISMATCH, "the image has another version")),
    (r" is missing: the image has to bring it", _says(Reason.PACKAGE_UNAVAILABLE, "the image has none")),
)
_JOIN = _rows(
    (
        r"\[ERROR KubeletVersion\]|kubelet version is (?:higher|newer)|this version of kubeadm only supports",
        _says(Reason.VERSION_MISMATCH, "the kubelet's version does not go with that of the API server"),
    ),
    (r"\[ERROR [A-Za-z0-9._/-]{1,64}\]", _preflight),
    (
        r"x509: |certificate signed by unknown authority|certificate has expired|tls: ",
        _says(Reason.DISCOVERY_FAILED, "the API server's certificate is not trusted"),
    ),
    (
        r"unauthorized|invalid bearer token|failed to verify JWS",
        _says(Reason.DISCOVERY_FAILED, "the API server does not take the bootstrap token"),
    ),
    (
        r"no such host|connection refused|i/o timeout|no route to host|network is unreachable"
        r"|couldn't validate the identity of the API Server|failed to request the cluster-info"
        r"|context deadline exceeded[^\n]*(?:https?://|dial)",
        _says(Reason.DISCOVERY_FAILED, "the API server can't be reached"),
    ),
    (
        r"kubelet is not (?:healthy|running)|kubelet isn't running|:10248/healthz",
        _says(Reason.JOIN_FAILED, "the kubelet does not run"),
    ),
    (
        r"forbidden",
        _says(Reason.JOIN_FAILED, "the API server forbids it"),
    ),
)

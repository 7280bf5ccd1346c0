"""What a host says of a failed step becomes one of few reasons, and words that name the step and the cause."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.conditions import Reason
from controllers.bootstrap import failure
from controllers.kernel.host_report import Report

INSTALL = Report("abcdef", 1, 8, 13, "install kubelet 1.36.9", "binary", True, 1)
JOIN = replace(INSTALL, step=13, name="join the cluster", action="command")
PRESENT = replace(INSTALL, name="check kubelet 1.36.9", action="present")
TABLE = [
    (INSTALL, "curl: (22) The requested URL returned error: 404\nm/kubelet can't be fetched", "PackageUnavailable"),
    (INSTALL, "E: Version '1.36.9-*' for 'kubelet' was not found", "PackageUnavailable"),
    (INSTALL, "E: Unable to locate package kubelet", "PackageUnavailable"),
    (INSTALL, "No match for argument: kubelet-1.36.9\nError: Unable to find a match: x", "PackageUnavailable"),
    (INSTALL, "Status code: 404 for https://m/repodata/repomd.xml (IP: 10.0.0.1)", "PackageUnavailable"),
    (INSTALL, "E: The repository 'http://m/deb ./ Release' does not have a Release file.", "PackageUnavailable"),
    (INSTALL, "curl: (7) Failed to connect to 10.1.1.1 port 80 after 0 ms: Couldn't connect", "MirrorUnreachable"),
    (INSTALL, "curl: (6) Could not resolve host: mirror\nhttp://m/kubelet can't be fetched", "MirrorUnreachable"),
    (INSTALL, "curl: (22) The requested URL returned error: 503", "MirrorUnreachable"),
    (INSTALL, "curl: (60) SSL certificate problem: unable to get local issuer certificate", "MirrorUnreachable"),
    (INSTALL, "Err:1 http://m/deb InRelease\n  Temporary failure resolving 'm'", "MirrorUnreachable"),
    (INSTALL, "Errors during downloading metadata: Curl error (7): Couldn't connect to server", "MirrorUnreachable"),
    (INSTALL, "http://m/kubelet is not what its checksum says", "ChecksumMismatch"),
    (INSTALL, "E: Failed to fetch http://m/k.deb  Hash Sum mismatch", "ChecksumMismatch"),
    (INSTALL, "W: GPG error: http://m InRelease: NO_PUBKEY 234654DA9A296436", "ChecksumMismatch"),
    (INSTALL, "Error: GPG check FAILED", "ChecksumMismatch"),
    (PRESENT, "/usr/bin/kubelet is of version 1.35.4, not 1.36.9", "VersionMismatch"),
    (PRESENT, "/usr/bin/kubelet is missing: the image has to bring it, or name a mirror", "PackageUnavailable"),
    (PRESENT, "", "VersionMismatch"),
    (JOIN, "Some fatal errors occurred:\n\t[ERROR Swap]: on\n\t[ERROR Port-10250]: in use", "PreflightFailed"),
    (JOIN, "\t[ERROR KubeletVersion]: Kubelet version: 1.37.2 is higher than 1.36.3", "VersionMismatch"),
    (JOIN, "couldn't validate the identity of the API Server: context deadline exceeded", "DiscoveryFailed"),
    (JOIN, "Get \"https://10.0.0.1:6443\": dial tcp 10.0.0.1:6443: connect: connection refused", "DiscoveryFailed"),
    (JOIN, "tls: failed to verify certificate: x509: certificate signed by unknown authority", "DiscoveryFailed"),
    (JOIN, "error: Unauthorized", "DiscoveryFailed"),
    (JOIN, "[kubelet-check] The kubelet is not healthy after 4m0s", "JoinFailed"),
    (JOIN, "a Node with name \"n\" and status \"Ready\" already exists in the cluster", "JoinFailed"),
    (JOIN, "", "JoinFailed"),
    (replace(INSTALL, name="turn off swap", action="command"), "swapoff: failed", "StepFailed"),
    (replace(INSTALL, name="", action=""), "", "StepFailed"),
]  # fmt: skip


@pytest.mark.parametrize(("report", "log", "reason"), TABLE, ids=range(len(TABLE)))
def test_the_reason_by_what_the_step_was_and_has_printed(report: Report, log: str, reason: str) -> None:
    assert failure.classify(replace(report, log=log)).reason == reason


def test_the_message_names_step_version_and_cause_and_ends_with_the_log() -> None:
    log = "curl: (22) The requested URL returned error: 404\nhttp://m/kubelet can't be fetched\n"
    assert failure.in_words(replace(INSTALL, log=log)) == (
        "step 8/13 'install kubelet 1.36.9': no kubelet of 1.36.9 in the repository: "
        "curl: (22) The requested URL returned error: 404 | http://m/kubelet can't be fetched"
    )


def test_checks_of_kubeadm_are_named() -> None:
    log = "\t[ERROR Swap]: swap is on\n\t[ERROR Port-10250]: Port 10250 is in use\n\t[ERROR Swap]: again"
    assert "checks of kubeadm failed: Swap, Port-10250, tried 3 times" in failure.in_words(
        replace(JOIN, log=log, attempt=3)
    )


reports = st.builds(
    Report,
    token_id=st.just("abcdef"),
    sequence=st.integers(0, 9),
    step=st.integers(1, 999),
    steps=st.just(999),
    name=st.text(max_size=128),
    action=st.sampled_from(["", "binary", "command", "present", "packages"]),
    failed=st.just(True),
    code=st.integers(0, 255),
    attempt=st.integers(1, 2**53),
    log=st.text(max_size=2048),
)


@given(reports)
def test_any_report_gives_a_known_reason_and_a_bounded_message(report: Report) -> None:
    assert isinstance(failure.classify(report).reason, Reason)
    assert 0 < len(failure.in_words(report)) <= failure.LONGEST_MESSAGE


LATE = "it did not end within 900 s\n"


@pytest.mark.parametrize(
    ("report", "log", "reason", "words"),
    [
        (INSTALL, f"http://10.9.9.9:80/v1/kubelet can't be fetched\n{LATE}", "MirrorUnreachable",
         "did not end within 900 s; is http://10.9.9.9:80 reachable from the host?"),
        (replace(INSTALL, action="packages"), LATE, "MirrorUnreachable",
         "did not end within 900 s; are the host's repositories reachable from the host?"),
        (replace(INSTALL, action="archive"), f"https://[fd00::1]:8/x can't be fetched\n{LATE}", "MirrorUnreachable",
         "is https://[fd00::1]:8 reachable"),
        (replace(INSTALL, name="mount", action="command"), LATE, "StepFailed", "did not end within 900 s"),
        (replace(INSTALL, name="mount", action="command"), "", "StepFailed", "did not end in the time that it has"),
        (INSTALL, f"http://m/kubelet is not what its checksum says\n{LATE}", "ChecksumMismatch", "checksum"),
        (JOIN, LATE, "JoinFailed", "did not end within 900 s"),
        (JOIN, f"dial tcp 10.0.0.1:6443: i/o timeout\n{LATE}", "DiscoveryFailed", "can't be reached"),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_step_whose_time_is_over_says_so_and_what_to_look_at(
    report: Report, log: str, reason: str, words: str
) -> None:
    late = replace(report, code=failure.TIMED_OUT, log=log)
    assert failure.classify(late).reason == reason
    assert words in failure.in_words(late)

"""What the cloud says, and the class that follows: the table of docs/providers/openstack.md."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from keystoneauth1 import exceptions as keystone

from providers.base.errors import ErrorClass, ProviderError
from providers.openstack import errors

WRITES = {
    "quota of Nova": (403, {"forbidden": {"message": "Quota exceeded for cores, ram: Requested 5"}}, "QuotaExceeded"),
    "quota of Neutron": (
        409,
        {"NeutronError": {"message": "Quota exceeded for resources: ['port']."}},
        "QuotaExceeded",
    ),
    "quota of Cinder": (413, {"overLimit": {"message": "VolumeSizeExceedsAvailableQuota: quota"}}, "QuotaExceeded"),
    "policy": (403, {"forbidden": {"message": "Policy doesn't allow it"}}, "InvalidConfiguration"),
    "unknown flavor": (400, {"badRequest": {"message": "Flavor nope could not be found."}}, "NotFound"),
    "unknown image": (400, {"badRequest": {"message": "Can not find requested image"}}, "NotFound"),
    "unknown zone": (400, {"badRequest": {"message": "The requested availability zone is not available"}}, "NotFound"),
    "bad field": (400, {"badRequest": {"message": "Invalid input for field/attribute name."}}, "InvalidConfiguration"),
    "login": (401, {"error": {"message": "The request you have made requires authentication."}}, "Unauthorized"),
    "gone": (404, {"itemNotFound": {"message": "Instance could not be found."}}, "NotFound"),
    "no address left": (
        409,
        {"NeutronError": {"message": "No more IP addresses available on network f1."}},
        "StockOut",
    ),
    "no place for a resize": (
        400,
        {"badRequest": {"message": "No valid host was found. No valid host found for resize"}},
        "StockOut",
    ),
    "no floating IP left": (
        400,
        {"NeutronError": {"message": "Unable to find any IP address on external network f1."}},
        "StockOut",
    ),
    "an address that is taken": (
        409,
        {"NeutronError": {"message": "IP address 10.0.0.4 already allocated"}},
        "Conflict",
    ),
    "a full server group": (
        403,
        {"forbidden": {"message": "Quota exceeded, too many servers in group"}},
        "QuotaExceeded",
    ),
    "too much metadata": (
        403,
        {"forbidden": {"message": "Maximum number of metadata items exceeds 128"}},
        "InvalidConfiguration",
    ),
    "an old Nova": (
        406,
        {"computeFault": {"message": "Version 2.79 is not supported by the API. Minimum is 2.1 and maximum is 2.72."}},
        "InvalidConfiguration",
    ),
    "busy": (409, {"conflictingRequest": {"message": "Instance is not ready"}}, "Conflict"),
    "too many": (429, {"overLimit": {"message": "This request was rate-limited."}}, "RateLimited"),
    "too many, as old clouds say it": (413, {"overLimit": {"message": "rate-limited"}}, "RateLimited"),
    "internal": (500, {"computeFault": {"message": "Unexpected API Error."}}, "Internal"),
    "front end": (503, None, "Unavailable"),
    "bad gateway": (502, None, "Unavailable"),
    "gateway timeout": (504, None, "Timeout"),
}
FAILURES = {
    "refused": (
        keystone.ConnectFailure("Unable to establish connection: [Errno 111] Connection refused"),
        "Unavailable",
    ),
    "cut": (keystone.ConnectFailure("('Connection aborted.', RemoteDisconnected())"), "Unavailable"),
    "no answer": (keystone.ConnectTimeout("Request to http://x timed out"), "Timeout"),
    "no service": (keystone.EndpointNotFound("compute"), "InvalidConfiguration"),
    "wrong password": (keystone.Unauthorized("no"), "Unauthorized"),
    "an application credential that was deleted": (
        keystone.NotFound("Could not find Application Credential: 4f1c. (HTTP 404)"),
        "Unauthorized",
    ),
    "a wrong address of the login": (keystone.NotFound("Not Found (HTTP 404)"), "Unavailable"),
    "certificate": (keystone.SSLError("CERTIFICATE_VERIFY_FAILED"), "Unavailable"),
    "requests' own": (requests.exceptions.ConnectionError("x"), "Unavailable"),
    "a bug": (KeyError("x"), "Internal"),
}
SURE = {
    "refused",
    "wrong password",
    "no service",
    "certificate",
    "an application credential that was deleted",
    "a wrong address of the login",
}
"""Failures after which nothing can have been made."""


@pytest.mark.parametrize("case", WRITES)
def test_an_answer_has_its_class(case: str) -> None:
    status, body, want = WRITES[case]
    error = errors.of_answer(False, status, {}, body)
    assert error.error_class == want
    assert isinstance(error, errors.Ambiguous) == (status >= 500)


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_has_its_class(case: str) -> None:
    failure, want = FAILURES[case]
    error = errors.of_exception(failure, reads=False)
    assert error.error_class == want
    assert isinstance(error, errors.Ambiguous) == (case not in SURE)
    assert not isinstance(errors.of_exception(failure, reads=True), errors.Ambiguous)


def test_a_login_that_may_not_even_read_is_unauthorized() -> None:
    assert errors.of_answer(True, 403, {}, None).error_class is ErrorClass.UNAUTHORIZED


def test_retry_after_and_the_requests_id_are_kept() -> None:
    headers = {"Retry-After": "17", "x-openstack-request-id": "req-1"}
    error = errors.of_answer(False, 429, headers, {"overLimit": {"message": "slow down"}})
    assert (error.retry_after, error.message) == (17.0, "slow down (req-1)")


def test_retry_after_may_be_a_date_and_is_told_by_the_clouds_own_clock() -> None:
    headers = {"Retry-After": "Sun, 22 Nov 2026 10:00:30 GMT", "Date": "Sun, 22 Nov 2026 10:00:00 GMT"}
    assert errors.of_answer(False, 429, headers, None).retry_after == 30.0
    for odd in ({"Retry-After": headers["Retry-After"]}, {**headers, "Retry-After": "soon"}, {"Retry-After": "-5"}):
        assert errors.of_answer(False, 429, odd, None).retry_after is None
    past = {**headers, "Retry-After": "Sun, 22 Nov 2026 09:00:00 GMT"}
    assert errors.of_answer(False, 429, past, None).retry_after == 0.0


@pytest.mark.parametrize(
    ("fault", "want"),
    [
        ({"message": "No valid host was found. There are not enough hosts available."}, ErrorClass.STOCK_OUT),
        ({"message": "Exceeded maximum number of retries. Exhausted all hosts"}, ErrorClass.STOCK_OUT),
        ({"message": "Build of instance aborted: Quota exceeded for gigabytes"}, ErrorClass.QUOTA_EXCEEDED),
        ({"message": "Build of instance aborted: Volume did not finish"}, ErrorClass.INTERNAL),
        (None, ErrorClass.INTERNAL),
    ],
)
def test_a_fault_has_its_class(fault: Any, want: ErrorClass) -> None:
    assert errors.of_fault(fault)[0] is want


def test_what_the_cloud_repeats_of_a_request_is_not_told() -> None:
    message = "Invalid input for field/attribute user_data. Value: c2VjcmV0. hm. 'c2VjcmV0. hm' is too long"
    error = errors.of_answer(False, 400, {"x-openstack-request-id": "req-1"}, {"badRequest": {"message": message}})
    assert error.message == "Invalid input for field/attribute user_data. Value: [hidden] is too long (req-1)"


@pytest.mark.parametrize("headers", [{}, {"x-openstack-request-id": "internal words"}])
@pytest.mark.parametrize("body", [{"error": {"message": "internal words"}}, {"error": "internal words"}, "internal"])
def test_what_is_no_answer_of_openstack_is_not_quoted(headers: dict[str, str], body: Any) -> None:
    """Whoever names the cloud in a Secret could have any service's answers read to him."""
    for status in (400, 403, 404, 500, 503):
        message = errors.of_answer(True, status, headers, body).message
        assert message.startswith(f"the cloud answered {status}")
        assert "internal" not in message


def test_no_secret_is_told() -> None:
    assert errors.redact("login hunter22 refused\nfor bob", ["hunter22"]) == "login [hidden] refused for bob"
    assert isinstance(errors.of_answer(False, 500, {}, "text"), ProviderError)

"""Which addresses a server may have that a Secret names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.base.addresses import AddressPolicy, AddressRefusedError, default_policy, networks

POD = default_policy({"KUBERNETES_SERVICE_HOST": "10.96.0.1"})
DESK = default_policy({})


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "169.254.170.2", "169.254.0.1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "168.63.129.16",
        "100.100.100.200", "192.0.0.192", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
        "::169.254.169.254", "0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "", "x", "1.2.3",
    ],
)  # fmt: skip
def test_metadata_services_and_what_is_no_host_are_refused_everywhere(address: str) -> None:
    for policy in (POD, DESK):
        assert policy.why_not(address)
        with pytest.raises(AddressRefusedError):
            policy.check(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_loopback_is_refused_in_a_pod_alone(address: str) -> None:
    assert "pod" in POD.why_not(address)
    assert DESK.why_not(address) == ""


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.1", "172.16.0.9", "8.8.8.8", "2001:db8::1", "fd00::1"])
def test_private_networks_are_not(address: str) -> None:
    assert POD.why_not(address) == ""


def test_what_is_allowed_is_all_that_is_allowed() -> None:
    policy = AddressPolicy(allowed=networks(["169.254.169.0/24", "127.0.0.1"]), loopback=False)
    assert policy.why_not("169.254.169.254") == policy.why_not("127.0.0.1") == ""
    assert "--server-allow-cidrs" in policy.why_not("10.0.0.1")
    assert "--server-allow-cidrs" in policy.why_not("2001:db8::1")


def test_what_is_denied_is_denied_though_it_is_allowed() -> None:
    policy = AddressPolicy(allowed=networks(["10.0.0.0/8"]), denied=networks(["10.1.0.0/16"]))
    assert policy.why_not("10.0.0.1") == ""
    for address in ("10.1.0.1", "::ffff:10.1.0.1", "64:ff9b::a01:1"):
        assert policy.why_not(address)
    assert "--server-deny-cidrs" in policy.why_not("10.1.0.1")


@pytest.mark.parametrize("text", ["10.0.0.0/33", "x", "10.0.0", "::/129"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not appear|not permitted|Only|Expected"):
        networks([text])


@given(st.ip_addresses() | st.text())
def test_any_text_has_an_answer(address: object) -> None:
    assert POD.why_not(str(address)).isprintable()

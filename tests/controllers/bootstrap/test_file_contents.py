"""Contents of files that lie in Secrets: in what a host gets, and nowhere else."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from api.bootstraprules import bootstrap
from api.names import HOST_FILES_SECRET_TYPE
from controllers.bootstrap.calls import Get, Refused
from controllers.bootstrap.credentials import ensure
from controllers.bootstrap.join import Join
from controllers.bootstrap.ordering import Rendering
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.reporter import secret_files
from controllers.bootstrap.settings import effective
from controllers.bootstrap.steps import Files, Steps
from controllers.kernel.bootstrapping import DataPresent, FileSource
from controllers.kernel.refs import Key
from providers.base.user_data import UserDataLimit
from tests.builders.clock import NOW
from tests.controllers.bootstrap.conversations import MARK, Servers, order
from tests.controllers.bootstrap.test_join import CA

CONTENT = b"s3cret\x00\xff"
FILES = (FileSource("creds", "token", "spec.bootstrap.files[0].contentFrom"),)
WANTED = replace(order(), contents=FILES)
SPEC = {"bootstrap": {"files": [{"path": "/etc/creds", "contentFrom": {"secret": {"name": "creds", "key": "token"}}}]}}
TOKEN = "abcdef.0123456789abcdef"


def secret(content: bytes = CONTENT, type_: str = HOST_FILES_SECRET_TYPE, key: str = "token") -> dict[str, Any]:
    data = {key: base64.b64encode(content).decode()}
    return {"metadata": {"name": "creds", "namespace": "default"}, "type": type_, "data": data}


def made(servers: Servers, **changes: Any) -> DataPresent | Refused:
    return servers.run(ensure(replace(WANTED, **changes), MARK, lambda: "0123456789abcdef", NOW))


def user_data(servers: Servers) -> bytes:
    found = servers.get("machines", WANTED.secret)
    assert found is not None
    return base64.b64decode(found["data"]["userData"])


def test_the_content_is_in_what_the_host_gets() -> None:
    servers = Servers()
    servers.put("machines", secret())
    assert isinstance(made(servers), DataPresent)
    assert user_data(servers).endswith(CONTENT)


REFUSED: dict[str, tuple[dict[str, Any] | None, str]] = {
    "none": (None, "Secret default/creds does not exist"),
    "of another type": (secret(type_="Opaque"), "is not of the type nodewright.dev/host-files"),
    "without the key": (secret(key="other"), "has no key token"),
    "garbage": ({**secret(), "data": {"token": "%%%"}}, "is not base64"),
    "without data": ({**secret(), "data": None}, "has no key token"),
}


@pytest.mark.parametrize(("there", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_without_it_nothing_is_made_and_the_field_is_named(there: dict[str, Any] | None, why: str) -> None:
    servers = Servers()
    if there is not None:
        servers.put("machines", there)
    found = made(servers)
    assert isinstance(found, Refused)
    assert found.reason == "InvalidBootstrapSpec"
    assert found.message.startswith("spec.bootstrap.files[0].contentFrom: ")
    assert why in found.message
    assert servers.get("machines", WANTED.secret) is None


def test_a_changed_or_deleted_secret_changes_nothing_for_a_host_that_has_its_data() -> None:
    """And its token is renewed all the same."""
    servers = Servers()
    servers.put("machines", secret())
    made(servers)
    servers.put("machines", secret(b"another"))
    assert isinstance(made(servers), DataPresent)
    assert user_data(servers).endswith(CONTENT)
    del servers.objects["machines", Key("default", "creds")]
    assert isinstance(made(servers), DataPresent)
    made_anew = made(servers, digest="two")
    assert isinstance(made_anew, Refused), "data that is made anew needs it"


def test_a_secret_of_several_files_is_read_once() -> None:
    servers = Servers()
    servers.put("machines", secret())
    made(servers, contents=FILES * 3)
    assert servers.calls.count(Get("machines", Key("default", "creds"))) == 1


def test_data_that_its_content_makes_too_large_for_the_cloud_is_refused() -> None:
    servers = Servers()
    servers.put("machines", secret(bytes(range(256)) * 100))
    found = made(servers, limit=UserDataLimit("a cloud", 4096))
    assert isinstance(found, Refused)
    assert found.reason == "DataTooLarge"


def _join() -> Join:
    return Join("1.36.3", "https://10.0.0.1:6443", CA, TOKEN, settings=effective({}, SPEC))


@pytest.mark.parametrize("form", ["cloud-config", "script", "ignition"])
def test_rendered_without_contents_it_shows_where_they_lie(form: Any) -> None:
    shown, full = Rendering(_join(), form)(TOKEN), Rendering(_join(), form)(TOKEN, {("creds", "token"): CONTENT})
    assert shown != full
    assert repr(replace(_join(), contents={("creds", "token"): CONTENT})) == repr(_join()), "no digest, no log has it"


def test_the_file_is_secret_and_readable_by_root_alone() -> None:
    steps = join_steps(replace(_join(), contents={("creds", "token"): CONTENT}))
    assert isinstance(steps, Steps)
    (file,) = [f for s in steps.steps if isinstance(s.action, Files) for f in s.action.files if f.path == "/etc/creds"]
    assert (file.content, file.mode, file.secret) == (CONTENT, 0o600, True)
    assert "/etc/creds" in secret_files(steps), "a host's report repeats none of its lines"
    assert "/etc/creds" not in steps.forget


SOURCE = {"secret": {"name": "creds", "key": "token"}}
WRONG = {
    "both": ({"content": "x", "contentFrom": SOURCE}, "files[0].content: exactly one of"),
    "neither": ({}, "files[0].content: exactly one of"),
    "encoded": ({"contentFrom": SOURCE, "encoding": "base64"}, "files[0].encoding: goes with content"),
    "containerd's": ({"contentFrom": SOURCE, "path": "/etc/containerd/config.toml"}, "files[0].contentFrom: must not"),
}


@pytest.mark.parametrize(("file", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_is_refused_of_a_spec(file: dict[str, Any], said: str) -> None:
    found = bootstrap({"bootstrap": {"files": [{"path": "/etc/creds", **file}]}}, "spec")
    assert any(f"{fault.path}: {fault.message}".startswith(f"spec.bootstrap.{said}") for fault in found)


@pytest.mark.parametrize("source", [{}, {"secret": {}}, {"secret": {"name": "UPPER", "key": "a"}}, "x", {"secret": []}])
def test_what_is_no_source_is_named(source: Any) -> None:
    found = effective({}, {"bootstrap": {"files": [{"path": "/etc/creds", "contentFrom": source}]}})
    assert found.faults
    assert all("spec.bootstrap.files" in fault.field for fault in found.faults)


def test_a_good_one_has_no_fault() -> None:
    assert effective({}, SPEC).faults == ()

"""A definition that the API server forgets to remove is asked for again, and what holds it is said."""

from typing import Any

import pytest

from api import names
from controllers.kernel.refs import Key, Kind, Ref
from nodewright.cli.exits import CliError
from nodewright.cli.installation import removing
from nodewright.cli.installation.removing import Removal
from nodewright.runtime.kube.client import Page
from nodewright.runtime.kube.errors import ApiError

STORAGE = "could not list instances: storage is (re)initializing"


class ForgetfulServer:
    """Has one definition, which it removes only if something else than its Terminating condition changes."""

    def __init__(self, *, wakes: bool = True) -> None:
        self.patches: list[dict[str, Any]] = []
        self.wakes = wakes
        self.there = True

    async def list_page(self, kind: Kind, **_how: Any) -> Page:
        return Page([], "1", "")

    async def get(self, kind: Kind, key: Key) -> dict[str, Any]:
        if key.name != "machines.cluster.k8s.io" or not self.there:
            raise ApiError(404, "NotFound", "gone")
        conditions = [{"type": "Terminating", "status": "True", "message": STORAGE}]
        return {
            "metadata": {"name": key.name, "uid": "uid"},
            "spec": {"group": names.GROUP},
            "status": {"conditions": conditions},
        }

    async def delete(self, target: Ref) -> None:
        assert target.uid == "uid"

    async def merge_patch(self, target: Ref, patch: dict[str, Any]) -> dict[str, Any]:
        self.patches.append(patch)
        self.there = not self.wakes
        return {}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removing, "_NUDGE_SECONDS", 0.0)
    monkeypatch.setattr(removing, "_POLL_SECONDS", 0.001)


async def test_a_definition_that_stays_is_changed_so_that_the_api_server_looks_again() -> None:
    server = ForgetfulServer()
    await removing.remove(server, Removal(crds=True, dry_run=False, wait_seconds=60))  # type: ignore[arg-type]
    assert server.patches == [{"metadata": {"annotations": {names.REMOVAL_ANNOTATION: "1"}}}]


async def test_one_that_stays_nevertheless_is_named_with_what_the_api_server_says_of_it() -> None:
    server = ForgetfulServer(wakes=False)
    with pytest.raises(CliError, match=r"machines\.cluster\.k8s\.io is still there after 0 s: could") as raised:
        await removing.remove(server, Removal(crds=True, dry_run=False, wait_seconds=0.2))  # type: ignore[arg-type]
    assert STORAGE in str(raised.value)
    assert len(server.patches) > 1

"""Follow a rollout until it ends: a line for each step, or a value for programs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nodewright.cli.exits import CliError
from nodewright.cli.rollout.access import Deployment
from nodewright.cli.rollout.rollout_status import RolloutStatus, revision_of, rollout_status
from nodewright.cli.screen import say
from nodewright.cli.structured import Output, show, show_next

if TYPE_CHECKING:
    from controllers.kernel.refs import Obj

POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Following:
    """``revision``: the one that has to run, 0: any. ``gone``: until old Machines are deleted."""

    watch: bool
    revision: int
    gone: bool
    output: Output = Output.TEXT


def _must_run(revision: int, body: Obj) -> None:
    """``revision`` 0: any."""
    running = revision_of(body)
    if revision and running != revision:
        raise CliError(f"revision {revision} is not the running one, which is {running}")


async def follow(found: Deployment, following: Following) -> None:
    """Raises CliError when it failed. A step is printed once; the object is read again every POLL_SECONDS."""
    printed: Any = None
    while True:
        body = await found.read()
        _must_run(following.revision, body)
        rollout = rollout_status(body)
        done = rollout.state == "done" and not (following.gone and rollout.going)
        value = as_value(body, rollout, done=done)
        shown = value["message"] if following.output is Output.TEXT else value
        if shown != printed:
            _print(value, rollout, following)
        printed = shown
        if rollout.state == "failed":
            raise CliError(rollout.text, f"See `nodewright describe md {found.name} -n {found.namespace}`")
        if done and rollout.going and following.output is Output.TEXT:
            say(f"{rollout.going}; --wait-gone waits for that", err=True)
        if done or not following.watch:
            return
        await asyncio.sleep(POLL_SECONDS)


def as_value(body: Obj, rollout: RolloutStatus, *, done: bool) -> dict[str, Any]:
    """For ``-o json`` and ``-o yaml``. ``done``: nothing is waited for any more, old Machines included if asked for."""
    waits = rollout.state == "done" and not done
    return {
        "namespace": body["metadata"]["namespace"],
        "name": body["metadata"]["name"],
        "revision": revision_of(body),
        "state": "on its way" if waits else rollout.state,
        "message": f"Waiting for old Machines to be gone: {rollout.going}..." if waits else rollout.text,
        **({"beingDeleted": rollout.going} if rollout.going else {}),
    }


def _print(value: dict[str, Any], rollout: RolloutStatus, following: Following) -> None:
    """A failure is no line of text: the error says it."""
    if following.output is Output.TEXT:
        if rollout.state != "failed":
            say(value["message"])
    elif following.watch:
        show_next(value, following.output)
    else:
        show(value, following.output)

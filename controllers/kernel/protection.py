"""Machines that nothing but a person takes away: their membership status says ``evictable: false``.

The cloudpool contract ("machine membership status") promises that such a machine is neither terminated by a smaller
size nor replaced. One rule for every decision that chooses Machines: a protected one is never chosen. A mark to go
first (``cluster.k8s.io/delete-machine``) says nothing then. Deleting the Machine, or the object that owns it, is a
person's own request and stays possible.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from api import names
from controllers.kernel.refs import Obj, annotations_of
from controllers.kernel.wording import counted, some_of

if TYPE_CHECKING:
    from controllers.kernel.machine_facts import MachineFacts

MOST_NAMED = 5
"""Machines that a condition names; the rest is counted."""
_MOST_READ = 256
"""Characters of the annotation that are read: what clients write has about 35."""
WAY_OUT = "set evictable to true over the cloudpool API, or delete them"


def read_membership(machine: Obj) -> tuple[bool, bool] | None:
    """``active`` and ``evictable`` as a client said them; None if none did. What can't be read is (True, False)."""
    text = annotations_of(machine).get(names.CLOUDPOOL_MEMBERSHIP_ANNOTATION)
    if text is None or text == "":
        return None
    if not isinstance(text, str) or len(text) > _MOST_READ:
        return True, False
    try:
        body = json.loads(text)
        active, evictable = body["active"], body["evictable"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return True, False
    return (active, evictable) if isinstance(active, bool) and isinstance(evictable, bool) else (True, False)


def is_protected(machine: Obj) -> bool:
    """Whether no decision of ours may take the Machine or its host away."""
    membership = read_membership(machine)
    return membership is not None and not membership[1]


def sentence(machines: Collection[MachineFacts]) -> str:
    """``2 Machines stay, protected by membership status (evictable: false): a, b; set evictable …``."""
    listed = sorted(machine.key.name for machine in machines)
    stays = counted(len(listed), "Machine stays", "Machines stay")
    return f"{stays}, protected by membership status (evictable: false): {some_of(listed, MOST_NAMED)}; {WAY_OUT}"

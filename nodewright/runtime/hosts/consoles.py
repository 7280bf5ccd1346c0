"""What hosts show on their consoles that have not joined in time: asked in the background, once for each host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controllers.bootstrap.console import last_lines
from nodewright.runtime.hosts.answers import Answers
from nodewright.runtime.hosts.scope import Scope
from providers.base.contract import Host
from providers.base.errors import ProviderError

GOOD_FOR, EMPTY_FOR = 86_400.0, 60.0
"""Seconds until a console is asked for again: what was said of a host stays said, one write is enough for it. And after
an answer that was none.
"""


class Consoles(Answers[str]):
    """``changed`` gets the UID of a Machine whose host's console is known now."""

    call = "console"

    def __init__(self, changed: Callable[[str], None]) -> None:
        super().__init__()
        self._changed = changed
        self._hosts: dict[bytes, Host] = {}
        """Whose consoles are being asked for."""

    def look_for(self, host: Host, scope: Scope) -> str:
        """Its last lines; "" as long as nobody knows them."""
        which = {"uid": host.machine_uid, "id": host.id}
        key = self.key(which, scope)
        self._hosts[key] = host
        reported = self.look(which, scope)
        if key not in self._pending:
            self._hosts.pop(key, None)
        return reported or ""

    async def _answer(self, config: Mapping[str, Any], scope: Scope) -> str:
        return last_lines(await scope.console(self._hosts[self.key(config, scope)]))

    def _failed(self, error: ProviderError) -> str:
        return ""

    def _good_for(self, reported: str) -> float:
        return GOOD_FOR if reported else EMPTY_FOR

    def _answered(self, key: bytes, before: str | None, now: str) -> None:
        host = self._hosts.pop(key, None)
        if host is not None and now and now != before:
            self._changed(host.machine_uid)

"""Lists that come in pages. A cloud may make them shorter than asked for (Nova's max_limit): a link tells of more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from providers.openstack.session import Requests


async def all_of(requests: Requests, service: str, path: str, limit: int) -> list[Mapping[str, Any]]:
    """All things of a list whose member is named by the last plural of ``path``. Raises ProviderError."""
    member = path.partition("?")[0].removesuffix("/detail").rpartition("/")[2]
    start = f"{path}{'&' if '?' in path else '?'}limit={limit}"
    things: list[Mapping[str, Any]] = []
    mark = ""
    while True:
        answer = await requests.get(service, start + mark)
        page = list(answer.get(member) or ())
        things += page
        if not page or (len(page) < limit and not _says_more(answer, member)):
            return things
        mark = f"&marker={quote(str(page[-1]['id']))}"


def _says_more(answer: Mapping[str, Any], member: str) -> bool:
    """Nova and Neutron have a list of links, Glance one address."""
    links = answer.get(f"{member}_links") or ()
    return bool(answer.get("next")) or any(link.get("rel") == "next" for link in links)

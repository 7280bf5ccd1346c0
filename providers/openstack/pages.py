"""Lists that come in pages. A cloud may make them shorter than asked for (Nova's max_limit): a link tells of more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from providers.base.errors import ErrorClass, ProviderError
from providers.openstack.session import Requests

MOST_THINGS = 200_000
"""Pages of one list: many times what a project may hold."""


async def all_of(requests: Requests, service: str, path: str, limit: int) -> list[Mapping[str, Any]]:
    """All things of a list whose member is named by the last plural of ``path``. Raises ProviderError."""
    member = path.partition("?")[0].removesuffix("/detail").rpartition("/")[2]
    start = f"{path}{'&' if '?' in path else '?'}limit={limit}"
    things: list[Mapping[str, Any]] = []
    mark = ""
    while True:
        answer = await requests.get(service, start + mark)
        page = answer.get(member) or []
        if not isinstance(page, list) or not all(isinstance(thing, Mapping) for thing in page):
            raise ProviderError(ErrorClass.UNAVAILABLE, f"the cloud's list of {member} is not a list of objects")
        things += page
        if not page or (len(page) < limit and not _says_more(answer, member)):
            return things
        last = page[-1].get("id")
        following = f"&marker={quote(last, safe='')}" if isinstance(last, str) else mark
        if following == mark or len(things) > MOST_THINGS:
            raise ProviderError(ErrorClass.UNAVAILABLE, f"the cloud's list of {member} does not come to an end")
        mark = following


def _says_more(answer: Mapping[str, Any], member: str) -> bool:
    """Nova and Neutron have a list of links, Glance one address."""
    found = answer.get(f"{member}_links")
    links = found if isinstance(found, list) else []
    return bool(answer.get("next")) or any(isinstance(link, Mapping) and link.get("rel") == "next" for link in links)

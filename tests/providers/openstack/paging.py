"""What the services of the fake cloud have in common: things, refusals, pages."""

from __future__ import annotations

from typing import Any

from aiohttp import web

Thing = dict[str, Any]
MOST = web.AppKey("most", int)
"""How many things a page holds at most."""


class Refused(Exception):
    def __init__(self, status: int, message: str, kind: str = "badRequest") -> None:
        self.status, self.message, self.kind = status, message, kind


def page(member: str, things: list[Thing], request: web.Request) -> Thing:
    """As all services page: after ``marker``, at most ``limit``, and no more than the cloud itself allows.

    A page that is full tells where the next one is.
    """
    marker, limit = request.query.get("marker", ""), int(request.query.get("limit", "1000"))
    most = min(limit, request.config_dict[MOST])
    start = next((index + 1 for index, one in enumerate(things) if str(one["id"]) == marker), 0)
    found = things[start : start + most]
    if len(found) < most:
        return {member: found}
    following = request.url.update_query(marker=str(found[-1]["id"]))
    return {member: found, f"{member}_links": [{"rel": "next", "href": str(following)}]}

"""What is known of the data with which a Machine's host joins: values that the Machine's plan decides from.

No secret is among them: a bootstrap token is named by its id alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from controllers.kernel.host_report import Report
from controllers.kernel.refs import Key, Ref
from providers.base.contract import BootstrapFormat
from providers.base.user_data import UserDataLimit

TOKEN_LIFE = timedelta(minutes=30)
"""For how long a token is good. It is renewed while its host comes up."""
RENEW_AFTER = TOKEN_LIFE / 3
"""The pause between two looks at a token: 10 minutes of 30."""


@dataclass(frozen=True, slots=True)
class Support:
    """What the provider of a config does with bootstrap data.

    ``formats``: those that it hands to its hosts, the best first. ``own``: why its hosts get none from here, "" if they
    do. ``limit``: how much user data its cloud takes, None: no limit is known. ``prepares``: it can make a host ready
    before there is anything to join.
    """

    formats: tuple[BootstrapFormat, ...] = ()
    own: str = ""
    limit: UserDataLimit | None = None
    prepares: bool = False


NO_SUPPORT = Support()


@dataclass(frozen=True, slots=True)
class JoinTarget:
    """The API server that a host joins. ``ca``: PEM; ``version``: as it says itself, without ``v``."""

    server: str
    ca: str
    version: str


@dataclass(frozen=True, slots=True)
class NoTarget:
    """Nobody can join there now; ``reason`` is that of a condition."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class DataUnknown:
    """Nobody has looked since the start."""


@dataclass(frozen=True, slots=True)
class DataAbsent:
    """There is neither a bootstrap Secret nor a token."""


@dataclass(frozen=True, slots=True)
class DataPresent:
    """The Secret and its token are there. ``whole`` is False where only a trace of them was seen.

    ``token_id``: "" for a host that makes a cluster, which needs no token. ``digest``: of all that the data was made of
    but the token.
    """

    token_id: str
    expires: datetime | None = None
    digest: str = ""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class DataRefused:
    """They could not be made or removed; ``reason`` is that of a condition. To be tried again at ``retry_at``."""

    reason: str
    message: str
    retry_at: datetime
    failures: int = 1


UNKNOWN = DataUnknown()
BootstrapData = DataUnknown | DataAbsent | DataPresent | DataRefused


@dataclass(frozen=True, slots=True)
class BootstrapNeed:
    """Ask the shell what is known of a Machine's bootstrap data. ``cluster`` None: its Nodes live in the management
    cluster.

    ``endpoint``: URL that a spec or status names, "" if the cluster has to say by itself where it is.
    ``token_id``: of the token that the Machine says its host has got, "" if it says of none.
    """

    machine: Ref
    cluster: Key | None = None
    endpoint: str = ""
    token_id: str = ""


@dataclass(frozen=True, slots=True)
class BootstrapReads:
    """``target`` None: it is being found out. ``in_flight``: the data is being made or removed.

    ``report``: what the host has said last of its bootstrap; None if it has said nothing.
    """

    target: JoinTarget | NoTarget | None = None
    data: BootstrapData = UNKNOWN
    in_flight: bool = False
    report: Report | None = None


NOBODY_LOOKED = BootstrapReads()


class Render(Protocol):
    """``contents``: of files, by name and key of their Secrets; ``founded``: what ``bootstrap.founding`` found for a
    control plane, None for a worker.
    """

    def __call__(self, token: str, contents: Mapping[tuple[str, str], bytes] = ..., founded: Any = ..., /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FileSource:
    """The content of a file that stands in no spec. ``field``: the path of the field that asks for it."""

    secret: str
    key: str
    field: str


@dataclass(frozen=True, slots=True)
class FoundingOrder:
    """A Machine whose host runs a control plane. ``endpoint``: ``host:port`` where the cluster's API is to be.

    ``answers``: it answers now. ``had_node``: the Machine had a Node once, so its host has been a control plane.
    ``was_made``: the Cluster says that it was initialized. ``version``: with which its host joins, without ``v``.
    """

    cluster: Ref
    endpoint: str
    answers: bool
    had_node: bool = False
    was_made: bool = False
    version: str = ""


@dataclass(frozen=True, slots=True)
class BootstrapOrder:
    """Bootstrap data to be there. ``render``: the bytes that a host with this token and these contents of files gets.

    ``contents``: which keys of Secrets beside the Machine those are. ``limit``: how much its cloud takes. ``founding``:
    of a control plane, None of a worker.

    ``secret``: where they go. ``digest``: of all that they are made of but the token.
    ``ids``: for the token, the first that is free is taken. ``warnings``: what works with it, and a later version
    breaks.
    """

    machine: Ref
    secret: Key
    ids: tuple[str, ...]
    format: BootstrapFormat
    digest: str
    render: Render
    cluster: Key | None = None
    cluster_name: str = ""
    warnings: tuple[str, ...] = ()
    contents: tuple[FileSource, ...] = ()
    limit: UserDataLimit | None = None
    founding: FoundingOrder | None = None

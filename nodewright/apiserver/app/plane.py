"""The embedded control plane as one object: start it, use it, stop it."""

from __future__ import annotations

import ipaddress
import tempfile
import uuid
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from nodewright.apiserver.app.authentication import Authenticator
from nodewright.apiserver.app.certificates import Credentials, ensure_credentials, server_context
from nodewright.apiserver.app.commits import Commits
from nodewright.apiserver.app.config import APIServerConfig
from nodewright.apiserver.app.connections import BoundedServer, Site
from nodewright.apiserver.app.documents import Documents
from nodewright.apiserver.app.faults import Faults
from nodewright.apiserver.app.front import Front, Parts
from nodewright.apiserver.app.kinds import install_kinds
from nodewright.apiserver.app.kubeconfig import write_kubeconfig
from nodewright.apiserver.app.private_files import private_folder
from nodewright.apiserver.app.reviews import Reviewer
from nodewright.apiserver.app.stats import Stats
from nodewright.apiserver.app.streams import LiveWatches, Streamer
from nodewright.apiserver.app.tokens import TOKEN_FILE, AccountClaim, Tokens
from nodewright.apiserver.app.users import USERS_FILE, Users
from nodewright.apiserver.app.verbs import Layers, Verbs
from nodewright.apiserver.store import Store, StoreOptions
from nodewright.apiserver.values import ApiError

_STOP_SECONDS = 5.0


class APIServer:
    """A Kubernetes API server in this process, for the time of an `async with`.

    Entering raises OSError if the address or the data folder can't be used, JournalError if another process has the
    folder or its state is of a later format, ValueError for a CustomResourceDefinition that is none.
    """

    url: str
    kubeconfig_path: Path
    ca_path: Path
    token: str
    store: Store
    stats: Stats
    faults: Faults

    def __init__(self, config: APIServerConfig) -> None:
        self.config = config
        self._exit = AsyncExitStack()
        self._ready = False
        self._live = LiveWatches()

    async def __aenter__(self) -> Self:
        async with self._exit as stack:
            await self._start(stack)
            self._exit = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ready = False
        await self._exit.aclose()

    @property
    def watches(self) -> int:
        """The number of watch streams that are running."""
        return len(self._live)

    async def _start(self, stack: AsyncExitStack) -> None:
        config = self.config
        folder = self._folder(stack)
        self.store = self._open_store(stack, folder)
        credentials = ensure_credentials(folder, config.host, _now())
        tokens = Tokens.load_or_create(folder)  # after the state: a folder with a token has had one
        self.ca_path, self.token = credentials.ca, tokens.admin
        self.stats = Stats()
        self.faults = Faults(self._live)
        commits = Commits(self.store)
        stack.callback(commits.stop)
        install_kinds(self.store, self.config.crds)
        commits.start()
        users = Users(folder / USERS_FILE, self._live.cut, _now)
        port = await self._listen(stack, self._front(commits, tokens, users), credentials)
        stack.callback(self._live.close)
        self.url = _url(config.host, port)
        self.kubeconfig_path = config.kubeconfig or folder / "kubeconfig"
        write_kubeconfig(self.kubeconfig_path, self.url, credentials, in_memory=config.data_dir is None)
        self._ready = True

    def _folder(self, stack: AsyncExitStack) -> Path:
        if self.config.data_dir is not None:
            return private_folder(self.config.data_dir)
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nodewright-plane-")))

    def _open_store(self, stack: AsyncExitStack, folder: Path) -> Store:
        journal = None
        if self.config.data_dir is not None:
            from nodewright.apiserver.store.sqlite_journal import SqliteJournal  # noqa: PLC0415

            known = (folder / TOKEN_FILE).exists()
            journal = SqliteJournal(folder / "state.db", accept_loss=self.config.accept_loss, expected=known)
        options = StoreOptions(namespace_grace=timedelta(seconds=self.config.namespace_grace_seconds))
        store = Store(clock=_now, new_uid=lambda: str(uuid.uuid4()), journal=journal, options=options)
        store.on_undo(self._cut)
        stack.callback(store.close)
        return store

    def _cut(self, collections: set[str]) -> None:
        """End the watches that may have begun on what was undone; their clients list again."""
        for name in collections:
            self._live.cut(name, ApiError.expired("the last changes could not be written to the disk and are undone"))

    def _why_not_ready(self, commits: Commits) -> str:
        if not self._ready:
            return "the server starts or stops"
        return commits.fault.message if commits.fault is not None else ""

    def _front(self, commits: Commits, tokens: Tokens, users: Users) -> Front:
        store, limits = self.store, self.config.limits
        authenticator = Authenticator(tokens, _now, self._account_exists, users)
        reviewer = Reviewer(authenticator, tokens, _now)
        layers = Layers(store, Streamer(store, commits, self._live), self._live, reviewer, _now, limits)
        return Front(
            Parts(
                store=store,
                commits=commits,
                authenticator=authenticator,
                reviewer=reviewer,
                verbs=Verbs(layers),
                documents=Documents(store.resources, lambda: self._why_not_ready(commits)),
                stats=self.stats,
                faults=self.faults,
                limits=limits,
                anonymous_cluster_info=self.config.anonymous_cluster_info,
            )
        )

    async def _listen(self, stack: AsyncExitStack, front: Front, credentials: Credentials) -> int:
        limits = self.config.limits
        runner = web.ServerRunner(BoundedServer(front, limits), shutdown_timeout=_STOP_SECONDS)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        address = (self.config.host, self.config.port)
        site = Site(runner, address, server_context(credentials), limits.header_seconds)
        await site.start()
        port: int = runner.addresses[0][1]
        return port

    def _account_exists(self, claim: AccountClaim) -> bool:
        accounts = self.store.resources.find("", "v1", "serviceaccounts")
        assert accounts is not None
        try:
            found = self.store.get(accounts, claim.namespace, claim.name)
        except ApiError:
            return False
        return bool(found["metadata"]["uid"] == claim.uid)


def _now() -> datetime:
    return datetime.now(UTC)


def _url(host: str, port: int) -> str:
    """Give the address for clients on this machine: what listens everywhere is reached by loopback."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    with suppress(ValueError):
        shown = f"[{shown}]" if ipaddress.ip_address(shown).version == 6 else shown
    return f"https://{shown}:{port}"

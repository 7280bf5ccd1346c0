"""What a shell offers when Tab is pressed: kinds, names of objects, namespaces, contexts, providers.

Names come from the cluster that the command line means so far. The user waits after Tab, so the cluster has some
seconds; when it gives no answer, nothing is offered and nothing is printed. Shells evaluate what is offered, so only
names of plain characters are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from controllers.kernel.refs import Kind

SECONDS = 3.0
MOST = 500
"""Names read of a kind."""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,300}")
Completion = Callable[[typer.Context, str], list[str]]
Words = Mapping[str, tuple[str, ...]]
"""Name of a kind to the words for it, the usual one first."""


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    found: list[str] = []
    with suppress(Exception):
        from nodewright.runtime.kube.kubeconfig import context_names  # noqa: PLC0415

        found = context_names(ctx.params.get("kubeconfig"))
    return _fitting(found, incomplete)


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    return _fitting(_names(ctx, "Namespace"), incomplete)


def providers(ctx: typer.Context, incomplete: str) -> list[str]:
    from providers.base.registry import Registry  # noqa: PLC0415

    return _fitting(Registry.installed().names, incomplete)


def kinds(words: Words) -> Completion:
    """For the argument KIND, which may be KIND/NAME, too."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        word, slash, _ = incomplete.partition("/")
        if slash:
            return _fitting((f"{word}/{name}" for name in _named(ctx, words, word)), incomplete)
        return _fitting((each[0] for each in words.values()), incomplete)

    return complete


def names(words: Words) -> Completion:
    """For the argument NAME after KIND."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _fitting(_named(ctx, words, str(ctx.params.get("kind") or "")), incomplete)

    return complete


def names_of(kind: str, *words: str) -> Completion:
    """For an argument that names an object of one kind, where its ``words`` may stand before it (``md/workers``)."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        word, slash, _ = incomplete.partition("/")
        if slash and word not in words:
            return []
        return _fitting((f"{word}{slash}{name}" if slash else name for name in _names(ctx, kind)), incomplete)

    return complete


def _named(ctx: typer.Context, words: Words, word: str) -> list[str]:
    return next((_names(ctx, kind) for kind, each in words.items() if word.lower() in each), [])


def _fitting(found: Iterable[str], incomplete: str) -> list[str]:
    return [one for one in sorted(found) if one.startswith(incomplete) and _PLAIN.fullmatch(one)]


def _names(ctx: typer.Context, kind: str) -> list[str]:
    import asyncio  # noqa: PLC0415
    import io  # noqa: PLC0415

    from controllers.kernel import refs  # noqa: PLC0415
    from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

    known = {each.name: each for each in vars(refs).values() if isinstance(each, refs.Kind)}
    given = ctx.params
    with suppress(Exception), redirect_stderr(io.StringIO()):
        configure(level="error")
        return asyncio.run(_read(known[kind], given.get("namespace"), given.get("kubeconfig"), given.get("context")))
    return []


async def _read(kind: Kind, namespace: str | None, kubeconfig: Path | None, context: str | None) -> list[str]:
    import asyncio  # noqa: PLC0415

    from nodewright.cli.cluster.access import Target, client_of, connect  # noqa: PLC0415

    async with asyncio.timeout(SECONDS):
        connection = await connect(Target(kubeconfig, context))
        where = (namespace or connection.namespace) if kind.namespaced else ""
        async with client_of(connection) as client:
            page = await client.list_page(kind, MOST, namespace=where)
    return [str(each["metadata"]["name"]) for each in page.items]

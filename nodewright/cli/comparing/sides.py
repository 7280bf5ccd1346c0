"""One side of a comparison: a file or folder, one object, a Cluster with what belongs to it, or a whole namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import CLUSTER, MACHINE_HEALTH_CHECK, SECRET, Key, Kind, Obj, key_of, spec_of, uid_of
from nodewright.cli.cluster.access import Target, client_of, connect
from nodewright.cli.cluster.snapshot import objects_of, read_cluster
from nodewright.cli.commands.describe import KINDS as WORDS
from nodewright.cli.commands.describe import kind_of
from nodewright.cli.commands.validate import STDIN, check_text, texts
from nodewright.cli.comparing.declaration import Declaration, declaration_of, declared_in
from nodewright.cli.exits import USAGE, CliError
from nodewright.cli.manifests.checks import Checker, subjects
from nodewright.cli.manifests.documents import Document, read
from nodewright.cli.manifests.findings import in_order
from nodewright.cli.moving.graph import KINDS, Item, graph
from nodewright.cli.screen import say
from nodewright.runtime.kube.client import KubeClient
from nodewright.runtime.kube.errors import ApiError

NAMESPACE = "namespace"
_SUFFIXES = (".yaml", ".yml", ".json")
_FORMS = "A file or folder, KIND/NAME, NAMESPACE/NAME of a Cluster, or namespace/NAME"
_READABLE = {(kind.group, kind.name) for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Side:
    """``single``: it names one object. ``skipped``: what was left out, each a sentence for the reader."""

    title: str
    declarations: tuple[Declaration, ...]
    single: bool = False
    skipped: tuple[str, ...] = ()


def is_file(word: str) -> bool:
    """Whether ``word`` means something on this machine: what is there, and what is named like a manifest."""
    try:
        return word == STDIN or word.endswith(_SUFFIXES) or Path(word).exists()
    except (OSError, ValueError):
        return False


def from_files(word: str, namespace: str | None) -> Side:
    """Raises CliError for what can't be read and for manifests that are wrong; findings are printed."""
    checker, found = Checker(), texts([word])
    findings = in_order(finding for name, text in found for finding in check_text(checker, name, text))
    for finding in findings:
        say(finding.line(), err=True)
    if findings:
        raise CliError(f"{word}: {len(findings)} errors in the manifests", "Correct them first")
    documents = [part for _, text in found for part in read(text) if isinstance(part, Document)]
    objects = [subject.data for document in documents for subject in subjects(document.data)]
    return Side(word, tuple(declaration_of(obj, namespace or "default") for obj in objects))


def _head_and_name(word: str) -> tuple[str, str]:
    head, slash, name = word.partition("/")
    if not slash or not head or not name or "/" in name:
        raise CliError(f"{word[:80]!r} names nothing to compare", _FORMS, USAGE)
    return head, name


async def from_cluster(word: str, target: Target, namespace: str | None) -> Side:
    """Raises CliError."""
    head, name = _head_and_name(word)
    connection = await connect(target)
    home = namespace or connection.namespace
    title = f"{word} ({target.context})" if target.context else word
    async with client_of(connection) as client:
        if any(head.lower() in words for words in WORDS.values()):
            kind = kind_of(head)
            if kind != CLUSTER:
                obj = await _one(client, kind, Key(home, name))
                return Side(title, (declaration_of(obj),), single=True)
        elif head != NAMESPACE:
            home = head
        else:
            home = name
        world, skipped = await _world(client, home)
        objects = _all_of(world) if head == NAMESPACE else _of_cluster(world, Key(home, name))
    return Side(title, tuple(map(declaration_of, objects)), skipped=skipped)


def comparable(a: Side, b: Side, *, live: bool) -> tuple[Side, Side]:
    """``live``: one side is a cluster, which is asked for our kinds alone; others of the other side are left out."""
    return (_readable(a), _readable(b)) if live else (a, b)


def _readable(side: Side) -> Side:
    kept = tuple(each for each in side.declarations if (each.group, each.kind) in _READABLE)
    others = sorted({each.kind for each in side.declarations} - {each.kind for each in kept})
    if len(kept) == len(side.declarations):
        return side
    text = f"{side.title}: {len(side.declarations) - len(kept)} objects of other kinds left out: {', '.join(others)}"
    return Side(side.title, kept, side.single, (*side.skipped, text))


async def _one(client: KubeClient, kind: Kind, key: Key) -> Obj:
    try:
        return _typed(kind, await client.get(kind, key))
    except ApiError as error:
        if error.not_found:
            raise CliError(f"{kind} {key} does not exist", "See `kubectl get nodewright -A`") from error
        raise


async def _world(client: KubeClient, namespace: str) -> tuple[dict[Kind, list[Obj]], tuple[str, ...]]:
    world: dict[Kind, list[Obj]] = {}
    skipped: list[str] = []
    for kind in KINDS:
        try:
            cache = await read_cluster(client, (kind,), {kind: (Key(namespace, ""),)})
        except ApiError as error:
            if error.code not in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN} or kind == CLUSTER:
                raise
            skipped.append(f"{kind.plural} left out: {error.message}")
            continue
        world[kind] = [_typed(kind, obj) for obj in objects_of(cache, kind)]
    return world, tuple(skipped)


def _typed(kind: Kind, obj: Obj) -> dict[str, Any]:
    """Items of a list say neither."""
    return {**obj, "apiVersion": kind.api_version, "kind": kind.name}


def _of_cluster(world: Mapping[Kind, Sequence[Obj]], cluster: Key) -> list[Obj]:
    items = graph(world, cluster)
    if not items:
        there = ", ".join(sorted(str(key_of(each)) for each in world[CLUSTER]))
        hint = f"There are: {there}" if there else f"There is none in namespace {cluster.namespace}"
        raise CliError(f"Cluster {cluster} does not exist", hint)
    return declared_in(items)


def _all_of(world: Mapping[Kind, Sequence[Obj]]) -> list[Obj]:
    found: dict[str, Item] = {}
    for cluster in world[CLUSTER]:
        for item in graph(world, key_of(cluster)):
            found.setdefault(uid_of(item.obj), item)
    for item in _loose(world):
        found.setdefault(uid_of(item.obj), item)
    return declared_in(found.values())


def _loose(world: Mapping[Kind, Sequence[Obj]]) -> Iterator[Item]:
    """What is of no Cluster that is there. Whose a Secret is can't be known then."""
    clusters = {key_of(each).name for each in world[CLUSTER]}
    for kind, objects in world.items():
        for obj in objects if kind != SECRET else ():
            named = spec_of(obj).get("clusterName") if kind == MACHINE_HEALTH_CHECK else cluster_name_of(obj)
            if named not in clusters:
                yield Item(kind, obj)

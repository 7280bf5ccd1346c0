"""What the files of ``nodewright create cluster`` declare: one Cluster and all that belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.refs import CLUSTER, CONTROL_PLANE, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET, Key, Obj, key_of
from nodewright.cli.creation.addons import AddOn
from nodewright.cli.creation.objects import DEFAULT_NAMESPACE, name_of
from nodewright.cli.creation.spec_addons import addons_of, without_addons
from nodewright.cli.exits import CliError
from nodewright.cli.manifests.checks import Checker, subjects
from nodewright.cli.manifests.documents import Broken, read
from nodewright.cli.manifests.findings import in_order
from nodewright.cli.screen import say

_FIRST = ("Namespace", "CustomResourceDefinition", "Secret", "ConfigMap", "MachineClass", "Cluster")
_MEMBERS = (CONTROL_PLANE.name, MACHINE_DEPLOYMENT.name, MACHINE_SET.name, MACHINE.name)
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Declared:
    """``objects`` in the order in which they are applied; ``addons``: those of the Cluster's ``spec.addons``."""

    cluster: Key
    objects: tuple[dict[str, Any], ...]
    addons: tuple[AddOn, ...] = ()


def declared(files: Iterable[tuple[str, str]]) -> Declared:
    """Check name and text of each file as ``nodewright validate`` does. Raises CliError; findings are printed."""
    from nodewright.cli.commands.validate import check_text  # noqa: PLC0415

    texts, checker = list(files), Checker()
    findings = in_order([finding for name, text in texts for finding in check_text(checker, name, text)])
    for finding in findings:
        say(finding.line(), err=True)
    if findings:
        raise CliError(f"{len(findings)} of what the files say is wrong, nothing was done", "Correct it and run again")
    return _checked([(name, dict(subject.data)) for name, text in texts for subject in _subjects(text)])


def _subjects(text: str) -> Iterator[Any]:
    for part in read(text):
        if not isinstance(part, Broken):
            yield from subjects(part.data)


def _checked(found: list[tuple[str, dict[str, Any]]]) -> Declared:
    """Each object with the file that holds it."""
    objects = [_placed(each) for _, each in found]
    clusters = [(file, each) for (file, _), each in zip(found, objects, strict=True) if _is(each, CLUSTER.name)]
    if len(clusters) != 1:
        names = ", ".join(str(key_of(each)) for _, each in clusters[:_MOST_NAMES]) or "none"
        raise CliError(
            f"the files must hold one Cluster; they hold: {names}", "Make each cluster by a command of its own"
        )
    file, body = clusters[0]
    cluster = key_of(body)
    for each in objects:
        _must_belong(each, cluster)
    addons = addons_of(body, file, objects)
    sent = [without_addons(each) if each is body else each for each in objects]
    return Declared(cluster, tuple(sorted(sent, key=_rank)), tuple(addons))


def _placed(obj: dict[str, Any]) -> dict[str, Any]:
    """With the namespace that it gets without one. Server-side apply needs a name."""
    if not name_of(obj):
        raise CliError(f"{obj.get('kind')}: metadata.name is needed, generateName can't be applied twice")
    if not _is(obj, *_MEMBERS, CLUSTER.name):
        return obj
    return {**obj, "metadata": {"namespace": DEFAULT_NAMESPACE, **obj["metadata"]}}


def _must_belong(obj: Obj, cluster: Key) -> None:
    if not _is(obj, *_MEMBERS):
        return
    named, title = cluster_name_of(obj), f"{obj['kind']} {key_of(obj)}"
    hint = f"Give it the label cluster.k8s.io/cluster-name: {cluster.name} (a set: its template too)"
    if named != cluster.name:
        message = f"belongs to Cluster {named}, which the files do not hold" if named else "belongs to no Cluster"
        raise CliError(f"{title} {message}", hint)
    if key_of(obj).namespace != cluster.namespace:
        raise CliError(f"{title} is in another namespace than Cluster {cluster}", "Put both into one namespace")


def _is(obj: Obj, *kinds: str) -> bool:
    return obj.get("kind") in kinds and str(obj.get("apiVersion", "")).startswith(f"{CLUSTER.group}/")


def _rank(obj: Mapping[str, Any]) -> int:
    kind = str(obj.get("kind"))
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)

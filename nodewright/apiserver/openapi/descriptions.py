"""What the fields of built-in types mean, for `kubectl explain`.

The texts are those of the installed kubernetes_asyncio, whose models carry them as docstrings. Its files are read as
text: importing the package takes over a second, and this runs inside a request. Without the package there are no texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAP: Final = re.compile(r"attribute_map = \{(.*?)\n    \}", re.DOTALL)
_ENTRY: Final = re.compile(r"'(\w+)': '([^']+)'")
_GETTER: Final = re.compile(r'"""Gets the (\w+) of this \w+\.[^\n]*\n\n(.*?)\n *:return:', re.DOTALL)
_NOQA: Final = re.compile(r" *# noqa: E501")

_TYPES: Final = {
    "core.v1.Namespace": "A scope for names: objects of different namespaces may have the same name.",
    "core.v1.Node": "A machine that runs pods, as its kubelet and the control plane see it.",
    "core.v1.Pod": "A group of containers that run together on one node.",
    "core.v1.Secret": "A small amount of data that few should read. Values are base64 encoded.",
    "core.v1.ConfigMap": "Configuration for pods and controllers: text and binary values by key.",
    "core.v1.Event": "A report of something that happened to an object. Events are kept for a limited time.",
    "core.v1.ServiceAccount": "An identity for processes that talk to the API.",
    "core.v1.Service": "A name and an address for a set of pods.",
    "core.v1.PodTemplate": "A template from which pods can be made.",
    "core.v1.PersistentVolume": "A piece of storage of the cluster.",
    "core.v1.PersistentVolumeClaim": "A request for storage by a user.",
    "core.v1.NodeSpec": "What is wanted of a node.",
    "core.v1.NodeStatus": "What a node last reported about itself.",
    "core.v1.PodSpec": "What a pod is to run, and where it may run.",
    "core.v1.PodStatus": "What a pod's node last reported about it.",
    "apps.v1.Deployment": "Keeps a number of equal pods running; a changed template replaces them step by step.",
    "apps.v1.ReplicaSet": "Keeps a number of equal pods running.",
    "apps.v1.DaemonSet": "Keeps one pod running on every node that fits.",
    "apps.v1.StatefulSet": "Keeps a number of pods running, each with a name and storage of its own.",
    "policy.v1.PodDisruptionBudget": "Limits how many pods of a set may be down at the same time by evictions.",
    "coordination.v1.Lease": "A claim that must be renewed: heartbeats of nodes, leadership of controllers.",
    "apiextensions.v1.CustomResourceDefinition": "Teaches the server a new kind of objects.",
    "batch.v1.Job": "Runs pods until enough of them have succeeded.",
    "batch.v1.CronJob": "Makes Jobs on a schedule.",
    "storage.v1.StorageClass": "Describes a kind of storage that can be asked for.",
    "rbac.v1.Role": "A set of permissions within a namespace.",
    "rbac.v1.ClusterRole": "A set of permissions in the whole cluster.",
    "meta.v1.ObjectMeta": "What every stored object has: its name, labels, owners and history.",
    "meta.v1.ListMeta": "What a list says about itself: its version, and where to go on.",
    "meta.v1.LabelSelector": "Selects objects by their labels; all its requirements must hold.",
    "meta.v1.OwnerReference": "Names the object to which this one belongs, and with which it goes.",
    "meta.v1.Condition": "One aspect of an object's state, with the reason for it.",
    "meta.v1.Status": "The outcome of a request that answers with no object.",
}


def of_type(name: str) -> str:
    """Say in a sentence what a built-in type is, "" if that is not known."""
    return _TYPES.get(name, "")


@lru_cache(maxsize=1024)
def of_fields(name: str) -> Mapping[str, str]:
    """Give the descriptions of a built-in type's fields by their names in JSON."""
    for candidate in _files(name):
        if candidate.is_file():
            return dict(_read(candidate.read_text(encoding="utf-8")))
    return {}


def _files(name: str) -> Iterator[Path]:
    folder = _models()
    if folder is None:
        return
    module, _, kind = name.rpartition(".")
    group, _, version = module.partition(".")
    plain = f"{version}{kind}"
    for model in (plain, f"{group}{version.capitalize()}{kind}"):
        yield folder / f"{_WORDS.sub('_', model[:1].upper() + model[1:]).lower()}.py"


@lru_cache(maxsize=1)
def _models() -> Path | None:
    spec = find_spec("kubernetes_asyncio")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "client" / "models"


def _read(source: str) -> Iterator[tuple[str, str]]:
    attributes = _MAP.search(source)
    names = dict(_ENTRY.findall(attributes.group(1))) if attributes else {}
    for attribute, texts in _GETTER.findall(source):
        text = _NOQA.sub("", texts).strip()
        if attribute in names and text:
            yield names[attribute], text.replace('\\"', '"').replace("\\\\", "\\")

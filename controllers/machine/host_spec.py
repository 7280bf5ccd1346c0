"""What host does the Machine ask for? The request, its hash, and what is wrong with the spec if there can be none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from api import names
from api.conditions import Reason
from api.declared import MACHINE_SPEC
from api.noderules import registration
from controllers.kernel.memory import Memory, digest
from controllers.kernel.ownership import cluster_name_of
from controllers.kernel.provider_config import Resolved, class_key, resolve
from controllers.kernel.refs import (
    MACHINE_CLASS,
    Key,
    Obj,
    annotations_of,
    generation_of,
    key_of,
    labels_of,
    runs_control_plane,
    uid_of,
)
from controllers.kernel.view import ConfigProblem, View
from providers.base.contract import HostIdentity, HostRequest, NodeRegistration, Taint, Versions

HASH_LENGTH = 10


@dataclass(frozen=True, slots=True)
class DesiredHost:
    """``request`` is None if and only if there are ``problems``; ``waits`` if they may go without another spec."""

    request: HostRequest | None
    config_path: str = ""
    problems: tuple[ConfigProblem, ...] = ()
    reason: str = ""
    waits: bool = False

    @property
    def spec_hash(self) -> str:
        return self.request.spec_hash if self.request else ""


class _BadFieldError(ValueError):
    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.problem = ConfigProblem(path, message)


@dataclass(frozen=True, slots=True)
class _Read:
    """The desired host with all that it was read from. ``generation``: in Python 1 equals True and 1.0, in a spec it
    does not.
    """

    key: Key
    generation: int
    labels: Mapping[str, str]
    spec: Any
    renewal: str
    machine_class: Obj | None
    desired: DesiredHost

    def is_of(self, machine: Obj, machine_class: Obj | None) -> bool:
        return (
            self.machine_class is machine_class
            and self.generation == generation_of(machine)
            and self.key == key_of(machine)
            and self.labels == labels_of(machine)
            and self.renewal == renewal_of(machine)
            and bool(self.spec == machine.get("spec"))
        )


_memory: Memory[_Read] = Memory()


def desired_host(machine: Obj, view: View) -> DesiredHost:
    """Read a Machine's spec. Never raises: a field of a wrong type that slipped past the schema becomes a problem.

    Remembered as long as the Machine's spec and labels and its MachineClass are equal: each reconcile asks twice, and
    most reconciles come from a change of the status.
    """
    spec, uid = machine.get("spec"), uid_of(machine)
    named = class_key(spec, key_of(machine).namespace) if isinstance(spec, Mapping) else None
    machine_class = view.get(MACHINE_CLASS, named) if named is not None else None
    known = _memory.of(uid)
    if known is not None and known.is_of(machine, machine_class):
        return known.desired
    desired = _desired_host(machine, view)
    _memory.keep(
        uid,
        _Read(
            key_of(machine),
            generation_of(machine),
            labels_of(machine),
            spec,
            renewal_of(machine),
            machine_class,
            desired,
        ),
    )
    return desired


def _desired_host(machine: Obj, view: View) -> DesiredHost:
    spec = machine.get("spec")
    if not isinstance(spec, Mapping):
        return _refused(ConfigProblem("", "spec must be an object"))
    resolved = resolve(spec, key_of(machine).namespace, view)
    if not isinstance(resolved, Resolved):
        return DesiredHost(None, "", (resolved.problem,), resolved.reason, resolved.waits)
    try:
        request = _request(machine, spec, resolved.config)
        fault = next(registration(spec, "spec"), None)
        if fault is not None:
            raise _BadFieldError(fault.path.removeprefix("spec."), fault.message)
    except _BadFieldError as error:
        return _refused(error.problem)
    return DesiredHost(request, resolved.path)


def _refused(problem: ConfigProblem) -> DesiredHost:
    return DesiredHost(None, "", (problem,), Reason.INVALID_CONFIGURATION)


def _request(machine: Obj, spec: Mapping[str, Any], config: Mapping[str, Any]) -> HostRequest:
    key, uid = key_of(machine), uid_of(machine)
    asked = _versions(_mapping(spec, "versions", "versions"))
    failure_domain = _text(spec, "failureDomain", "failureDomain")
    _text(spec, "clusterName", "clusterName")
    worker = not asked.control_plane
    return HostRequest(
        identity=HostIdentity(uid, key.namespace, key.name, cluster_name_of(machine)),
        config=config,
        spec_hash=_spec_hash(spec, config, asked, renewal_of(machine)),
        kept_hash=_spec_hash(spec, config, replace(asked, kubelet="", control_plane="")),
        fixed_hash=_spec_hash(_without(spec, *_UNDER_PODS, *_DRAINED), config, Versions()) if worker else "",
        pods_hash=_spec_hash(_without(spec, *_UNDER_PODS), config, asked) if worker else "",
        versions=asked,
        node=NodeRegistration(
            labels=node_labels(machine), annotations=node_annotations(machine), taints=node_taints(machine)
        ),
        failure_domain=failure_domain,
    )


def _versions(versions: Mapping[str, Any]) -> Versions:
    """As numbers only: ``v1.34.0`` and ``1.34.0`` ask for the same."""
    runtime = _mapping(versions, "containerRuntime", "versions.containerRuntime")
    named = [_text(runtime, name, f"versions.containerRuntime.{name}") for name in ("name", "version")]
    return Versions(
        kubelet=_text(versions, "kubelet", "versions.kubelet").removeprefix("v"),
        control_plane=_text(versions, "controlPlane", "versions.controlPlane").removeprefix("v"),
        container_runtime="/".join(part for part in named if part),
    )


def renewal_of(machine: Obj) -> str:
    """What its annotation says for a host that runs a control plane: another value has its certificates renewed."""
    asked = annotations_of(machine).get(names.RENEW_CERTIFICATES)
    return asked if runs_control_plane(machine) and isinstance(asked, str) else ""


def _spec_hash(spec: Mapping[str, Any], config: Mapping[str, Any], asked: Versions, renewal: str = "") -> str:
    """The digest of the fields that are declared with ``Change.HOST``. What flows to the Node is not in it."""
    versions = [asked.kubelet, asked.control_plane, asked.container_runtime]
    parts = {"config": config, "versions": versions, **({"renewal": renewal} if renewal else {})}
    try:
        return digest(MACHINE_SPEC.host_part(spec, parts), HASH_LENGTH)
    except (TypeError, ValueError) as error:
        raise _BadFieldError("providerConfig", f"is not plain data: {error}") from error


_UNDER_PODS = ("kubeletConfiguration", "patches", "files", "users", "ntp", "proxy", "sysctls", "kernelModules")
"""Fields of ``spec.bootstrap`` whose change restarts the kubelet, for a proxy containerd too; pods run on."""
_DRAINED = ("packages", "archives")
"""Those that say where programs come from. Together with the versions they are all that steps change on a worker."""


def _without(spec: Mapping[str, Any], *fields: str) -> Mapping[str, Any]:
    """``spec`` without these fields of ``bootstrap``."""
    bootstrap = spec.get("bootstrap")
    if not isinstance(bootstrap, Mapping):
        return spec
    rest = {name: value for name, value in bootstrap.items() if name not in fields}
    return {**spec, "bootstrap": rest or None}


def node_labels(machine: Obj) -> dict[str, str]:
    """Labels that the Node has to carry: those of ``spec.metadata``, but none that would name another owner."""
    given = _node_metadata(machine, "labels")
    given.pop(names.NODE_OWNED_BY_LABEL, None)
    return given


def node_annotations(machine: Obj) -> dict[str, str]:
    """Annotations that the Node has to carry: those of ``spec.metadata``, its Machine's key (release-0.1) and UID."""
    owner = {names.NODE_MACHINE_ANNOTATION: str(key_of(machine)), names.NODE_MACHINE_UID_ANNOTATION: uid_of(machine)}
    return {**_node_metadata(machine, "annotations"), **owner}


def with_owner_label(desired: DesiredHost) -> DesiredHost:
    """The same, with the label by which kubermatic's tools find a Node's Machine."""
    request = desired.request
    if request is None:
        return desired
    labels = {**request.node.labels, names.NODE_OWNED_BY_LABEL: request.identity.machine_uid}
    return replace(desired, request=replace(request, node=replace(request.node, labels=labels)))


def node_taints(machine: Obj) -> tuple[Taint, ...]:
    """Taints that the Node has to carry, in the order of the spec, one for each key and effect."""
    taints = machine["spec"].get("taints") or ()
    if not isinstance(taints, list | tuple):
        raise _BadFieldError("taints", "must be a list")
    found: dict[tuple[str, str], Taint] = {}
    for index, taint in enumerate(taints):
        path = f"taints[{index}]"
        if not isinstance(taint, Mapping):
            raise _BadFieldError(path, "must be an object")
        one = Taint(*(_text(taint, name, f"{path}.{name}") for name in ("key", "effect", "value")))
        if not one.key or not one.effect:
            raise _BadFieldError(path, "must have a key and an effect")
        found[one.key, one.effect] = one
    return tuple(found.values())


def _node_metadata(machine: Obj, name: str) -> dict[str, str]:
    metadata = _mapping(machine["spec"], "metadata", "metadata")
    given = _mapping(metadata, name, f"metadata.{name}")
    return {str(key): _text(given, key, f"metadata.{name}[{key}]") for key in given}


def _mapping(parent: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    value = parent.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _BadFieldError(path, f"must be an object, is {type(value).__name__}")
    return value


def _text(parent: Mapping[str, Any], name: str, path: str) -> str:
    value = parent.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _BadFieldError(path, f"must be a string, is {type(value).__name__}")
    return value

"""What a provider is: frozen request in, frozen host out, seven methods, each safe to call again.

Rules that are not written here are not rules; the contract tests (``providers.base.contract_tests``) check these:

1. ``create`` is idempotent by ``identity.machine_uid``: called again (also at the same time, also after a crash between
   the provider's work and its answer) it returns the same host and makes no second one.
2. ``list`` shows every host of the scope that carries a Machine's UID, in one call; a host is listed from the moment
   ``create`` was accepted until nothing of it is left that costs money. Where a creation that failed or was killed
   leaves something behind, that is shown as a host that is ``Unfinished``.
   ``get`` and ``list`` agree on it. Once it is ``Running`` it has a ``provider_id`` and at least one of ``addresses``.
3. A host keeps ``machine_uid``, ``management_cluster`` and ``spec_hash`` of the request it was made or last updated for
   (tag, metadata, file).
4. ``delete`` of a host that is gone is no error; deletion is finished when ``list`` no longer shows it.
5. ``update`` never loses the host's identity; it answers soon (``InProgress`` if it takes long); repeats are safe.
6. Errors are ``ProviderError`` with the class that fits; messages hold no secrets.
7. Nothing blocks the event loop.
8. A host whose request has ``bootstrap`` comes up with exactly the bytes that the Secret holds, or is not made
   (NotFound if there is no such Secret). They hold a token: they are in no error, log or list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from providers.base.user_data import UserDataLimit


class HostState(StrEnum):
    PENDING = "Pending"
    """Accepted, not booted yet."""
    RUNNING = "Running"
    UPDATING = "Updating"
    STOPPED = "Stopped"
    DELETING = "Deleting"
    FAILED = "Failed"
    """Will not come up; ``failure`` says why."""
    UNFINISHED = "Unfinished"
    """There is no host, but something was made for one or is left of one (a disk, an address), and nobody is at it:
    ``create`` goes on with it, ``delete`` removes it."""


BootstrapFormat = Literal["cloud-config", "script", "ignition", "none"]
"""Forms of bootstrap data: user data for cloud-init, a POSIX shell script, Ignition 3.4, or none at all."""


@dataclass(frozen=True, slots=True)
class Address:
    """As core/v1 NodeAddress: type is InternalIP, ExternalIP, Hostname, InternalDNS or ExternalDNS."""

    type: str
    address: str


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """The Machine of a host. The UID is the identity; the names are for people and host names.

    ``management_cluster``: mark of the cluster in which the Machine object lives, at most 63 characters of a label's
    value, "" if it is not known. Several clusters may share an account; each may only remove hosts with its own mark.
    """

    machine_uid: str
    namespace: str
    name: str
    cluster: str = ""
    management_cluster: str = ""


@dataclass(frozen=True, slots=True)
class Versions:
    """Requested software; "" means: the provider's default."""

    kubelet: str = ""
    control_plane: str = ""
    container_runtime: str = ""
    """``name/version`` as in node.status.nodeInfo, or just the name."""


@dataclass(frozen=True, slots=True)
class Taint:
    key: str
    effect: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class NodeRegistration:
    """What the host's kubelet should register its Node with, so that no pod lands before the metadata is right."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


BOOTSTRAP_DATA = "userData"
"""Key of the Secret that a ``BootstrapRef`` names."""


@dataclass(frozen=True, slots=True)
class BootstrapRef:
    """Where the data lies with which a new host joins: by reference only, since it holds a token.

    ``secret_name``: a Secret beside the Machine, whose key ``userData`` holds the bytes as the host is to get them.
    ``format``: what they are.
    """

    secret_name: str
    format: BootstrapFormat = "cloud-config"


@dataclass(frozen=True, slots=True)
class HostContent:
    """What a file of a host holds: key ``key`` of Secret ``secret`` beside the Machine, which has to be of the type
    ``nodewright.dev/host-files``. ``field``: where the Machine names it, for messages.
    """

    secret: str
    key: str
    field: str


@dataclass(frozen=True, slots=True)
class KubeletUpgrade:
    """How a host that has joined becomes what its request asks for.

    ``script``: POSIX shell for root without a secret in it, safe to repeat, which tries again what fails when its
    argument is ``keep-trying``, and goes back to what was there before where that is in vain. "" if there is none, and
    ``why_not`` says why. With a script ``why_not`` says why it brings no other versions of programs, "" if it does.
    ``contents``: what the script has to find as base64 in its variables ``content_0``, ``content_1`` and so on, by
    reference only, since they are secret.
    """

    script: str = ""
    why_not: str = "nothing says where another kubelet comes from"
    contents: tuple[HostContent, ...] = ()


@dataclass(frozen=True, slots=True)
class HostRequest:
    """The host as the Machine wants it. ``config`` is the provider's own kind, already checked by its JSON Schema.

    ``bootstrap``: what a host that is made or rebuilt gets in order to join; None: nothing from here.
    ``preparation``: a script without a secret for a host that can't join yet: ``create`` takes the host, begins with
    it, and answers a host that is Unfinished; a later call brings ``bootstrap``. "" for none.
    Hashes of less than ``spec_hash``, to be compared with those of the request that a host was made for; "" compares
    with none. ``kept_hash``: without the kubelet's version. ``fixed_hash``: without all that ``upgrade`` can change on
    a host that runs. ``pods_hash``: without what it can change under running pods. ``upgrade``: in calls of ``update``
    alone.
    """

    identity: HostIdentity
    config: Mapping[str, Any]
    spec_hash: str
    versions: Versions = Versions()
    node: NodeRegistration = field(default_factory=NodeRegistration)
    failure_domain: str = ""
    bootstrap: BootstrapRef | None = None
    kept_hash: str = ""
    fixed_hash: str = ""
    pods_hash: str = ""
    upgrade: KubeletUpgrade = KubeletUpgrade()
    preparation: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """A host as the provider shows it now."""

    id: str
    machine_uid: str
    name: str
    provider_id: str
    """What node.spec.providerID will be; "" until known."""
    state: HostState
    spec_hash: str
    addresses: tuple[Address, ...] = ()
    failure: str = ""
    failure_domain: str = ""
    kubelet_version: str = ""
    created_at: datetime | None = None
    management_cluster: str = ""
    """As in ``HostIdentity``; "" on hosts that were made before there was a mark, and on what is left of a host."""
    rebooted: str = ""
    """The last attempt of ``RebootsHosts`` that was seen to have taken place; "" if none was."""
    drift: str = ""
    """What somebody has done to it by hand since it was made or changed, for people; "" if nothing is known."""


@dataclass(frozen=True, slots=True)
class Updated:
    """The host now is as requested."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """Work goes on; ask again after ``after`` seconds.

    ``failed``: it has ended in vain, and the host is as it was before: ``why`` says what went wrong. Only another
    request begins anything.
    """

    after: float = 5.0
    why: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class NeedsDrain:
    """Can be changed in place once its pods are gone; call again with ``drained``."""

    why: str


@dataclass(frozen=True, slots=True)
class NeedsReplacement:
    """Only a new host can be as requested."""

    why: str


UpdateAnswer = Updated | InProgress | NeedsDrain | NeedsReplacement


@dataclass(frozen=True, slots=True)
class Shape:
    """Capacity, labels and taints of a host that does not exist yet (Kubernetes quantities as text).

    ``failure_domain_label``: the label in which the Node of a host tells the failure domain that it was asked for in;
    "" if none does, or if the configuration alone says where hosts are.
    """

    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    failure_domain_label: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a config; ``path`` is relative to the config (``flavor``, ``disks[0].size``)."""

    path: str
    message: str


class Provider(Protocol):
    """One scope (account, region, project) of one provider. All methods raise ``ProviderError``."""

    async def validate(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        """Live checks beyond the schema (does the image exist?). Never called in admission."""

    async def create(self, request: HostRequest) -> Host: ...

    async def delete(self, host: Host) -> None: ...

    async def get(self, machine_uid: str) -> Host | None: ...

    async def list(self) -> tuple[Host, ...]: ...

    async def update(self, request: HostRequest, host: Host, drained: bool) -> UpdateAnswer: ...

    async def shape(self, config: Mapping[str, Any]) -> Shape: ...


@dataclass(frozen=True, slots=True)
class ConfigKind:
    """A versioned config type and its JSON Schema (draft 2020-12)."""

    api_version: str
    kind: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SecretRef:
    namespace: str
    name: str


class Secrets(Protocol):
    """Reads Secrets of one namespace, that of the Machines. What it answers may be some minutes old."""

    async def read(self, name: str, of_type: str = "") -> Mapping[str, bytes]:
        """The data of a Secret. Raises ProviderError: NotFound if there is none, InvalidConfiguration if ``of_type`` is
        given and it is of another type.
        """


class Objects(Protocol):
    """Reads objects of a provider's own kinds beside the Machines, in their namespace, and writes their status."""

    async def read(self, api_version: str, kind: str, name: str) -> Mapping[str, Any]:
        """The object. Raises ProviderError (NotFound if there is none)."""

    async def report(self, obj: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merge ``status`` into that of ``obj``, as it was read, and answer the object.

        Raises ProviderError: Conflict if somebody has changed it since.
        """


@dataclass(frozen=True, slots=True)
class Registration:
    """What a provider package's entry point (group ``nodewright.providers``) points at.

    ``scope_of(config)`` names the account/region that one ``list`` covers; configs with equal scopes share one
    Provider object, rate limit and breaker. ``open(scope, config)`` makes it.

    A provider whose login is in a Secret names it by ``secrets_of(config, namespace)``: its scopes are those of one
    namespace, so that nobody uses another one's login, and ``open_with_secrets`` takes the place of ``open``. The same
    holds for one that reads bootstrap data. One that has kinds of its own beside its configs takes
    ``open_with_objects``, which comes before both.
    ``list_pause``: seconds between two lists of a scope, at least. ``user_data_limit``: what its cloud takes at most as
    user data; None if there is no limit worth naming. ``in_place_refusal(config)``: why its hosts get no other version
    of Kubernetes in place, "" if they may; None: only ``update`` can tell.
    ``bootstrap_formats``: forms of bootstrap data that it hands to its hosts, the one it likes best first; (): none.
    ``brings_user_data(config)``: whether the config names user data of its own, so that its hosts get no other.
    ``bootstraps_itself``: its hosts join by what it does itself; it is given none.
    ``prepares_hosts``: it takes requests with a ``preparation``.
    """

    name: str
    config_kinds: tuple[ConfigKind, ...]
    scope_of: Callable[[Mapping[str, Any]], str]
    open: Callable[[str, Mapping[str, Any]], Provider]
    secrets_of: Callable[[Mapping[str, Any], str], tuple[SecretRef, ...]] = lambda _config, _namespace: ()
    open_with_secrets: Callable[[str, Mapping[str, Any], Secrets], Provider] | None = None
    open_with_objects: Callable[[str, Mapping[str, Any], Secrets, Objects], Provider] | None = None
    list_pause: float = 0.0
    bootstrap_formats: tuple[BootstrapFormat, ...] = ()
    brings_user_data: Callable[[Mapping[str, Any]], bool] = lambda _config: False
    bootstraps_itself: bool = False
    prepares_hosts: bool = False
    user_data_limit: UserDataLimit | None = None
    in_place_refusal: Callable[[Mapping[str, Any]], str | None] = lambda _config: None

    @property
    def reads_bootstrap_data(self) -> bool:
        """It reads Secrets beside the Machines of a namespace for its hosts, whatever their configs name."""
        opens = self.open_with_secrets or self.open_with_objects
        return bool(self.bootstrap_formats) and opens is not None

"""Make, renew and remove the two Secrets with which one host joins, as a conversation with two API servers.

    beside the Machine   <machine>-bootstrap           what the host gets, and the token once more
    where the Nodes are  kube-system/bootstrap-token-  what the API server knows the host by

``ensure`` and ``remove`` say one call after the other and are sent what it came to; whoever runs them does the calls.
They may die after any of them and be begun anew: what is there already is found again by its name and its owner.

The Secret comes first and goes first, so wherever one of the two is left, the token can be found by its label. A token
that got lost is made again as it was, since the host that was given it may be booting.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api import limits, names
from api.conditions import Reason
from controllers.bootstrap import cluster_version, founding
from controllers.bootstrap.calls import Call, Change, Drop, Get, Post, Refused, data_of
from controllers.bootstrap.file_contents import Contents, read_contents
from controllers.bootstrap.founding import Founded
from controllers.bootstrap.join import TOKEN
from controllers.kernel.bootstrapping import (
    TOKEN_LIFE,
    BootstrapOrder,
    DataAbsent,
    DataPresent,
)
from controllers.kernel.conditions import format_time, parse_time
from controllers.kernel.memory import digest
from controllers.kernel.refs import SECRET, Key, Obj, Ref, key_of, labels_of, mapping, uid_of
from providers.base.user_data import TooLarge, fit

LARGEST = 900_000
"""Bytes of data in a Secret, which may have 1 MiB in all."""
IDS = 4
"""Token ids that a Machine may have; two of 2 billion are equal by chance."""
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_LENGTH, _SECRET_LENGTH = 6, 16
_TRIES = 3

Ensuring = Generator[Call, Obj | None, DataPresent | Refused]
Removing = Generator[Call, Obj | None, DataAbsent]


def token_ids(machine_uid: str) -> tuple[str, ...]:
    """Ids for the Machine's token, the first that is free to be taken: the same after a crash.

    Base 36 of a SHA-256, as kubeadm's ids of ``[a-z0-9]{6}``.
    """
    return tuple(_in_alphabet(f"{machine_uid}/{number}", _ID_LENGTH) for number in range(IDS))


def secret_key(machine: Key) -> Key:
    """Where the bootstrap data of a Machine lies; a name that is too long is cut and ends in a digest."""
    name = f"{machine.name}{names.BOOTSTRAP_SUFFIX}"
    if len(name) > limits.MAX_OBJECT_NAME:
        mark = f"-{digest(machine.name, 10)}{names.BOOTSTRAP_SUFFIX}"
        name = f"{machine.name[: limits.MAX_OBJECT_NAME - len(mark)].rstrip('-.')}{mark}"
    return Key(machine.namespace, name)


def token_key(token_id: str) -> Key:
    return Key(names.TOKEN_NAMESPACE, f"{names.TOKEN_SECRET_PREFIX}{token_id}")


def is_of(secret: Obj, machine: Ref) -> bool:
    """Whether the bootstrap Secret was made for this very Machine: by its owner's UID."""
    owners = secret["metadata"].get("ownerReferences")
    listed = owners if isinstance(owners, list) else []
    ours = any(isinstance(each, Mapping) and each.get("uid") == machine.uid for each in listed)
    return bool(machine.uid) and ours and secret.get("type") == names.BOOTSTRAP_SECRET_TYPE


def is_token_of(secret: Obj, machine_uid: str) -> bool:
    """Whether the token was made for this very Machine."""
    marked = labels_of(secret).get(names.TOKEN_MACHINE_UID_LABEL) == machine_uid
    return bool(machine_uid) and marked and secret.get("type") == names.TOKEN_SECRET_TYPE


def token_of(secret: Obj) -> DataPresent:
    """What a token's Secret shows of the data that belongs to it."""
    name = key_of(secret).name.removeprefix(names.TOKEN_SECRET_PREFIX)
    return DataPresent(name, parse_time(data_of(secret).get("expiration")), whole=False)


def new_secret(draw: Callable[[int], int]) -> str:
    """The secret half of a token; ``draw(n)`` gives a number below n that nobody can foresee."""
    return "".join(_ALPHABET[draw(len(_ALPHABET))] for _ in range(_SECRET_LENGTH))


def ensure(order: BootstrapOrder, management_cluster: str, fresh: Callable[[], str], now: datetime) -> Ensuring:
    """See that both Secrets are there, alike and good for a while. ``fresh`` makes the secret half of a token."""
    refused: DataPresent | Refused = Refused(str(Reason.SECRET_CONFLICT), "somebody else changes them all the time")
    for _ in range(_TRIES):
        found = yield Get("machines", order.secret)
        if found is not None and not is_of(found, order.machine):
            return Refused(str(Reason.SECRET_CONFLICT), _conflict(order.secret, order.machine))
        trying = _Try(order, management_cluster, fresh, now)
        outcome = yield from (
            _ensured(trying, found, None) if order.founding is None else _ensured_there(trying, found)
        )
        if outcome is not None:
            return outcome
    return refused


def remove(order: Removal) -> Removing:
    """Remove both. What belongs to somebody else is left alone."""
    secret = yield Get("machines", order.secret)
    ids = dict.fromkeys(order.ids)
    if secret is not None and is_of(secret, order.machine):
        kept = _split(data_of(secret).get(names.BOOTSTRAP_TOKEN_KEY, ""))
        ids = dict.fromkeys((*((kept[0],) if kept else ()), *ids))
        yield Drop("machines", Ref(SECRET, order.secret, uid_of(secret)))
    for token_id in ids:
        token = yield Get("nodes", token_key(token_id))
        if token is not None and is_token_of(token, order.machine.uid):
            yield Drop("nodes", Ref(SECRET, key_of(token), uid_of(token)))
    if order.founds is not None:
        yield from founding.release(order.founds, order.machine.uid)
    return DataAbsent()


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to go. ``ids``: of tokens that it may have; () where no API server knows one.

    ``founds``: the Cluster that its host was to make and has not.
    """

    machine: Ref
    secret: Key
    ids: tuple[str, ...]
    founds: Key | None = None


@dataclass(frozen=True, slots=True)
class _Try:
    """What all of it needs to know."""

    order: BootstrapOrder
    management_cluster: str
    fresh: Callable[[], str]
    now: datetime


def _ensured_there(trying: _Try, kept: Obj | None) -> Generator[Call, Obj | None, DataPresent | Refused | None]:
    """For the host of a control plane. While it makes the cluster, there is no API server that could know a token."""
    order = trying.order
    assert order.founding is not None
    founded = yield from founding.found(order.founding, order.machine, trying.now)
    if not isinstance(founded, Founded):
        return founded
    if not founded.initializes:
        return (yield from _ensured_of_version(trying, kept, founded))
    if not _is_kept(order, kept, ""):
        data = yield from _made(order, "", founded)
        if isinstance(data, Refused):
            return data
        if not (yield from _keep(order, kept, "", data)):
            return None
    return DataPresent("", None, order.digest)


def _ensured_of_version(
    trying: _Try, kept: Obj | None, founded: Founded
) -> Generator[Call, Obj | None, DataPresent | Refused | None]:
    """For a host that joins a control plane. One that has its data already keeps it, whatever the cluster is now."""
    founding_order = trying.order.founding
    assert founding_order is not None
    if not founding_order.had_node and not _has_digest(trying.order, kept):
        agreed = yield from cluster_version.agree(founding_order.version)
        if isinstance(agreed, Refused):
            return agreed
        if not agreed:
            return None
    return (yield from _ensured(trying, kept, founded))


def _ensured(
    trying: _Try, kept: Obj | None, founded: Founded | None
) -> Generator[Call, Obj | None, DataPresent | Refused | None]:
    """One try; None if somebody was faster. ``founded``: what a control plane gets besides its token."""
    order = trying.order
    chosen = yield from _choose(order, kept, trying.fresh)
    if isinstance(chosen, Refused):
        return chosen
    token, known = chosen
    if not _is_kept(order, kept, token):
        data = yield from _made(order, token, founded)
        if isinstance(data, Refused):
            return data
        written = yield from _keep(order, kept, token, data)
        if not written:
            return None
    expires = yield from _register(order, token, known, trying.management_cluster, trying.now)
    return DataPresent(token[:_ID_LENGTH], expires, order.digest) if expires is not None else None


def _choose(
    order: BootstrapOrder, kept: Obj | None, fresh: Callable[[], str]
) -> Generator[Call, Obj | None, tuple[str, Obj | None] | Refused]:
    """The token that was given out already, else one whose id is free; and its Secret if there is one."""
    given = _split(data_of(kept).get(names.BOOTSTRAP_TOKEN_KEY, "")) if kept is not None else None
    if given is not None:
        found = yield Get("nodes", token_key(given[0]))
        if found is None or is_token_of(found, order.machine.uid):
            return ".".join(given), found
    for token_id in order.ids:
        found = yield Get("nodes", token_key(token_id))
        if found is None:
            return f"{token_id}.{fresh()}", None
        if is_token_of(found, order.machine.uid):
            secret = data_of(found).get("token-secret", "")
            token = f"{token_id}.{secret}"
            return (token if TOKEN.fullmatch(token) else f"{token_id}.{fresh()}"), found
    titles = ", ".join(token_key(each).name for each in order.ids)
    text = f"Secrets {titles} of {names.TOKEN_NAMESPACE} belong to somebody else; delete one that nobody needs"
    return Refused(str(Reason.SECRET_CONFLICT), text)


def _is_kept(order: BootstrapOrder, kept: Obj | None, token: str) -> bool:
    """Whether what the host gets lies there already. A Secret with the content of a file may be gone by now."""
    same = _has_digest(order, kept)
    return kept is not None and same and data_of(kept).get(names.BOOTSTRAP_TOKEN_KEY) == token


def _has_digest(order: BootstrapOrder, kept: Obj | None) -> bool:
    annotations = mapping(kept["metadata"].get("annotations")) if kept is not None else {}
    return annotations.get(names.BOOTSTRAP_DIGEST_ANNOTATION) == order.digest


def _made(order: BootstrapOrder, token: str, founded: Founded | None) -> Generator[Call, Obj | None, bytes | Refused]:
    contents = yield from read_contents(order)
    return contents if isinstance(contents, Refused) else _rendered(order, token, contents, founded)


def _rendered(order: BootstrapOrder, token: str, contents: Contents, founded: Founded | None) -> bytes | Refused:
    data = order.render(token, contents, founded)
    if len(data) > LARGEST:
        text = f"the bootstrap data has {len(data)} bytes, a Secret takes {LARGEST}; shorten spec.bootstrap"
        return Refused(str(Reason.DATA_TOO_LARGE), text)
    fitted = fit(data, order.limit) if contents else None  # without contents that was seen before
    if isinstance(fitted, TooLarge):
        return Refused(str(Reason.DATA_TOO_LARGE), f"spec.bootstrap with the contents of files: {fitted.message}")
    return data


def _keep(order: BootstrapOrder, kept: Obj | None, token: str, data: bytes) -> Generator[Call, Obj | None, bool]:
    """Write what the host gets."""
    body = bootstrap_secret(order, token, data)
    if kept is None:
        return (yield Post("machines", body)) is not None
    patch = {"metadata": {"annotations": body["metadata"]["annotations"]}, "data": body["data"]}
    version = str(kept["metadata"].get("resourceVersion") or "")
    target = Ref(SECRET, order.secret, uid_of(kept))
    return (yield Change("machines", target, patch, version)) is not None


def _register(
    order: BootstrapOrder, token: str, known: Obj | None, management_cluster: str, now: datetime
) -> Generator[Call, Obj | None, datetime | None]:
    """Let the API server know the token; until when it does. None if somebody was faster."""
    expires = now + TOKEN_LIFE
    body = token_secret(order, token, management_cluster, expires)
    if known is None:
        return expires if (yield Post("nodes", body)) is not None else None
    registered = data_of(known)
    until = parse_time(registered.get("expiration"))
    # At most 5 of 30 minutes may be gone, so that each look at it after 10 renews it.
    if (
        registered.get("token-secret") == token[_ID_LENGTH + 1 :]
        and until is not None
        and until - now > TOKEN_LIFE * 5 / 6
    ):
        return until
    version = str(known["metadata"].get("resourceVersion") or "")
    target = Ref(SECRET, key_of(known), uid_of(known))
    changed = yield Change("nodes", target, {"data": body["data"]}, version)
    return expires if changed is not None else None


def bootstrap_secret(order: BootstrapOrder, token: str, data: bytes) -> dict[str, Any]:
    """What lies beside the Machine. It goes with the Machine, whatever else happens."""
    machine = order.machine
    owner = {
        "apiVersion": machine.kind.api_version,
        "kind": machine.kind.name,
        "name": machine.key.name,
        "uid": machine.uid,
    }
    cluster = {names.CLUSTER_NAME_LABEL: order.cluster_name} if order.cluster_name else {}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": names.BOOTSTRAP_SECRET_TYPE,
        "metadata": {
            "name": order.secret.name,
            "namespace": order.secret.namespace,
            "labels": {names.TOKEN_MACHINE_UID_LABEL: machine.uid, **cluster},
            "annotations": {names.BOOTSTRAP_DIGEST_ANNOTATION: order.digest},
            "ownerReferences": [owner],
        },
        "data": {
            names.BOOTSTRAP_DATA_KEY: base64.b64encode(data).decode(),
            names.BOOTSTRAP_FORMAT_KEY: _encoded(order.format),
            names.BOOTSTRAP_TOKEN_KEY: _encoded(token),
        },
    }


def token_secret(order: BootstrapOrder, token: str, management_cluster: str, expires: datetime) -> dict[str, Any]:
    """The Secret of a bootstrap token as Kubernetes defines it.

    For authentication alone: hosts get the CA and the server's address, so nothing has to be signed for them. kubeadm's
    own group may read the ConfigMaps that ``kubeadm join`` needs.
    """
    token_id, _, secret = token.partition(".")
    managed = {names.TOKEN_MANAGED_BY_LABEL: management_cluster} if management_cluster else {}
    texts = {
        "token-id": token_id,
        "token-secret": secret,
        "expiration": format_time(expires),
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": f"{names.KUBEADM_TOKEN_GROUP},{names.OWN_TOKEN_GROUP}",
        "description": f"for Machine {order.machine.key}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": names.TOKEN_SECRET_TYPE,
        "metadata": {
            "name": token_key(token_id).name,
            "namespace": names.TOKEN_NAMESPACE,
            "labels": {names.TOKEN_MACHINE_UID_LABEL: order.machine.uid, **managed},
            "annotations": {names.TOKEN_MACHINE_ANNOTATION: str(order.machine.key)},
        },
        "data": {name: _encoded(text) for name, text in texts.items()},
    }


def _conflict(secret: Key, machine: Ref) -> str:
    return (
        f"Secret {secret} is there and was not made for {machine}: it is left alone; "
        "delete it, or give the Machine another name"
    )


def _split(token: str) -> tuple[str, str] | None:
    if not TOKEN.fullmatch(token):
        return None
    token_id, _, secret = token.partition(".")
    return token_id, secret


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _in_alphabet(text: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")
    found = ""
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        found += _ALPHABET[digit]
    return found

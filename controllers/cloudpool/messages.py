"""The cloudpool REST API, version 5: its messages as values, read strictly and written as its clients expect them.

What the lineage lets pass is refused here: a misspelt ``desiredSize`` would otherwise mean none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class MachineState(StrEnum):
    """Where a machine is in its life."""

    REQUESTED = "REQUESTED"
    REJECTED = "REJECTED"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"


class ServiceState(StrEnum):
    """What somebody said of the service on a machine; nothing follows from it."""

    BOOTING = "BOOTING"
    IN_SERVICE = "IN_SERVICE"
    UNHEALTHY = "UNHEALTHY"
    OUT_OF_SERVICE = "OUT_OF_SERVICE"
    UNKNOWN = "UNKNOWN"


ALLOCATED = frozenset({MachineState.REQUESTED, MachineState.PENDING, MachineState.RUNNING})
_LONGEST_QUOTE = 60
LONGEST = 1 << 31
"""No pool is as large as this."""


@dataclass(frozen=True, slots=True)
class Membership:
    """``active``: it counts. ``evictable``: the pool may take it away; False protects it, whatever others say."""

    active: bool = True
    evictable: bool = True

    def to_json(self) -> dict[str, Any]:
        return {"active": self.active, "evictable": self.evictable}


@dataclass(frozen=True, slots=True)
class PoolMachine:
    """One machine of a pool. Times are as they came, "" if there is none."""

    id: str
    state: MachineState
    membership: Membership = Membership()
    service_state: ServiceState = ServiceState.UNKNOWN
    public_ips: tuple[str, ...] = ()
    private_ips: tuple[str, ...] = ()
    launched: str = ""
    requested: str = ""
    metadata: Any = field(default=None, compare=False)
    cloud: tuple[str, str, str] = ("", "", "")
    """Provider, region and size, for people."""
    doubt: str = ""
    """Why it must not go whatever else is said of it, "" if there is no reason."""

    @property
    def allocated(self) -> bool:
        return self.state in ALLOCATED

    @property
    def active(self) -> bool:
        """It counts against the desired size."""
        return self.allocated and self.membership.active

    def to_json(self) -> dict[str, Any]:
        """Times that are not known are left out: Go clients can't read an empty one."""
        provider, region, size = self.cloud
        body = {
            "id": self.id,
            "machineState": str(self.state),
            "membershipStatus": self.membership.to_json(),
            "serviceState": str(self.service_state),
            "cloudProvider": provider,
            "region": region,
            "machineSize": size,
            "requestTime": self.requested,
            "launchTime": self.launched,
            "publicIps": list(self.public_ips),
            "privateIps": list(self.private_ips),
            "metadata": self.metadata,
        }
        left_out = ("requestTime", "launchTime", "metadata")
        return {key: value for key, value in body.items() if value or key not in left_out}


@dataclass(frozen=True, slots=True)
class PoolSize:
    desired: int
    allocated: int
    active: int


class MessageError(ValueError):
    """A message that can't be meant; ``detail`` says where."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(f"{message}: {detail}" if detail else message)
        self.message = message
        self.detail = detail


def pool_message(machines: Sequence[PoolMachine], now: datetime) -> dict[str, Any]:
    return {"timestamp": stamp(now), "machines": [machine.to_json() for machine in machines]}


def size_message(size: PoolSize, now: datetime) -> dict[str, Any]:
    return {
        "timestamp": stamp(now),
        "desiredSize": size.desired,
        "allocated": size.allocated,
        "active": size.active,
    }


def error_message(message: str, detail: str = "") -> dict[str, str]:
    return {"message": message, "detail": detail}


def stamp(moment: datetime) -> str:
    """UTC with milliseconds and ``Z``, as all servers of the lineage write it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def read_pool(body: Any) -> tuple[PoolMachine, ...]:
    """The machines of a machine pool message, each id once. Raises MessageError naming the field.

    A machine in a state that is not known, or one of two with one id, is counted and never goes: see ``doubt``."""
    machines = body.get("machines") if isinstance(body, Mapping) else None
    if not isinstance(machines, list):
        raise MessageError("not a machine pool", "machines: a list is needed")
    found = tuple(_machine(each, f"machines[{index}]") for index, each in enumerate(machines))
    return _once_each(found)


def read_size(body: Any) -> PoolSize:
    """A pool size message. Raises MessageError naming the field."""
    if not isinstance(body, Mapping):
        raise MessageError("not a pool size", "an object is needed")
    return PoolSize(*(_count(body, name) for name in ("desiredSize", "allocated", "active")))


def _count(body: Mapping[str, Any], name: str) -> int:
    number = body.get(name)
    if not isinstance(number, int) or not is_whole(number) or number < 0:
        raise MessageError("not a pool size", f"{name}: a whole number of at least 0 is needed")
    return number


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -LONGEST < value < LONGEST


def decoded(body: bytes, title: str) -> Mapping[str, Any]:
    """The fields of a request by lower-case name, as Go matches them; ``null`` is an empty one. Raises MessageError."""
    if not body.strip():
        raise MessageError(f"failed to decode {title} message", "the body is empty")
    try:
        found = json.loads(body.decode(), parse_constant=_no_constant)
        json.dumps(found, ensure_ascii=False).encode()  # a lone surrogate (\\ud800) could be written nowhere
    except (ValueError, RecursionError) as error:
        raise MessageError(f"failed to decode {title} message", f"not JSON: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise MessageError(f"failed to decode {title} message", "an object is needed")
    return {key.lower(): value for key, value in found.items()}


def typed(fields: Mapping[str, Any], name: str, wanted: type, title: str) -> Any:
    """The field, None if it is missing or null. Raises MessageError if it is of another type."""
    value = fields.get(name.lower())
    sound = is_whole(value) if wanted is int else isinstance(value, wanted)
    if value is not None and not sound:
        what = {int: "a whole number", bool: "true or false", str: "a string"}.get(wanted, "an object")
        raise MessageError(f"failed to decode {title} message", f"{name}: {what} is needed")
    return value


def desired_size_of(body: bytes) -> int:
    """The size that a "set desired size" message asks for. Raises MessageError in the words of the original."""
    title = "setDesiredSize"
    size = typed(decoded(body, title), "desiredSize", int, title)
    if size is None:
        raise MessageError(f"{title} message did not specify a desiredSize")
    if size < 0:
        raise MessageError(f"{title} message: desiredSize must be non-negative")
    return int(size)


@dataclass(frozen=True, slots=True)
class Dismissal:
    """Options of a terminate or detach message."""

    machine: str
    decrement: bool


def dismissal_of(body: bytes, title: str = "terminateMachine") -> Dismissal:
    """Raises MessageError in the words of the original."""
    fields = decoded(body, title)
    machine = machine_id_of(fields, title)
    return Dismissal(machine, bool(typed(fields, "decrementDesiredSize", bool, title)))


def machine_id_of(fields: Mapping[str, Any], title: str) -> str:
    machine = typed(fields, "machineId", str, title)
    if not machine:
        raise MessageError(f"{title} message did not specify a machineId")
    return str(machine)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _machine(body: Any, path: str) -> PoolMachine:
    if not isinstance(body, Mapping) or not isinstance(body.get("id"), str) or not body["id"]:
        raise MessageError("not a machine pool", f"{path}.id: a string is needed")
    machine_state = body.get("machineState")
    if not isinstance(machine_state, str) or not machine_state:
        raise MessageError("not a machine pool", f"{path}.machineState: a string is needed")
    state = next((each for each in MachineState if each == machine_state), None)
    service_state = body.get("serviceState")
    return PoolMachine(
        body["id"],
        state or MachineState.RUNNING,
        _membership(body.get("membershipStatus"), f"{path}.membershipStatus"),
        ServiceState(service_state) if service_state in set(ServiceState) else ServiceState.UNKNOWN,
        _texts(body.get("publicIps")),
        _texts(body.get("privateIps")),
        str(body.get("launchTime") or ""),
        str(body.get("requestTime") or ""),
        body.get("metadata"),
        doubt="" if state else f"its machineState {_quoted(machine_state)} is none of {', '.join(MachineState)}",
    )


def _once_each(machines: Sequence[PoolMachine]) -> tuple[PoolMachine, ...]:
    """The first allocated machine among several with one id, else the first."""
    counts = Counter(machine.id for machine in machines)
    found: dict[str, PoolMachine] = {}
    for machine in sorted(machines, key=lambda each: not each.allocated) if len(counts) < len(machines) else machines:
        doubt = f"{counts[machine.id]} machines of the pool have its id" if counts[machine.id] > 1 else machine.doubt
        found.setdefault(machine.id, replace(machine, doubt=doubt))
    return tuple(found.values())


def _quoted(value: str) -> str:
    return repr(value)[:_LONGEST_QUOTE]


def _membership(body: Any, path: str) -> Membership:
    """One that is missing protects the machine: who can't say that it may go keeps it."""
    if body is None:
        return Membership(active=True, evictable=False)
    if not isinstance(body, Mapping):
        raise MessageError("not a machine pool", f"{path}: an object is needed")
    parts = (body.get("active", True), body.get("evictable", True))
    if not all(isinstance(part, bool) for part in parts):
        raise MessageError("not a machine pool", f"{path}: active and evictable are true or false")
    return Membership(*parts)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()

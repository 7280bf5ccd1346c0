"""A simulated cloud: synchronous, seeded, on a clock that is handed in. It knows no Kubernetes and no asyncio.

What a host is at a moment follows from when things happened to it, so nothing has to tick. Luck that belongs to a host
(boot time, zombie, failures) is drawn from the seed and the Machine's UID, so it does not depend on the order of calls;
luck of API calls is drawn from the seed in the order of calls.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from pydantic import ValidationError

from providers.base.contract import (
    Host,
    HostIdentity,
    HostRequest,
    InProgress,
    NeedsDrain,
    NeedsReplacement,
    UpdateAnswer,
    Updated,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.simulated.config import Cloud, SimulatedMachineConfig, Updates, parse, seconds
from providers.simulated.hosts import SimulatedHost, as_host, born
from providers.simulated.keeping import Journal, SharedJournal

Clock = Callable[[], datetime]


class World:
    """One cloud: the hosts of one scope. Every method may be called at any time; none waits."""

    def __init__(self, settings: Cloud, clock: Clock, journal: Journal | None = None) -> None:
        self.name = settings.name
        self.settings = settings
        self.broken_versions: set[str] = set()
        """Versions of the kubelet that run on no host: one that is to be changed to it in place goes back."""
        self._clock = clock
        self._journal = journal
        self._shared = journal if isinstance(journal, SharedJournal) else None
        self._random = Random(f"{settings.name}/{settings.seed}")  # noqa: S311 (luck, not secrets)
        self._hosts: dict[str, SimulatedHost] = {}
        self._by_uid: dict[str, str] = {}
        self._vanishing: list[tuple[datetime, str]] = []
        self._names: Counter[str] = Counter()
        self._in_zone: Counter[str] = Counter()
        self._cpus = 0
        self._shown: dict[str, tuple[Host, datetime | None]] = {}
        self._serial = 0
        self._revision = 0
        self._upcoming: tuple[int, datetime | None] | None = None
        self._outage_until: datetime | None = None
        for host in journal.remembered() if journal else ():
            self._keep(host)
            self._serial = max(self._serial, host.serial)

    # What a provider calls. Each raises ProviderError.

    def create(self, request: HostRequest) -> Host:
        """Start the host of ``request.identity``, or show the one it has already (the UID is the client token)."""
        with self._alone():
            return self._create(request)

    def _create(self, request: HostRequest) -> Host:
        config = self._parsed(request)
        answer_lost = self._call("create")
        host = self._of(request.identity.machine_uid)
        if host is None:
            zone = self._zone_for(config, request.failure_domain)
            self._check_quota(config)
            self._serial += 1
            host = born(self.settings, self._serial, (request, config), (self._free_name(request), zone), self._clock())
            self._put(host)
        if answer_lost:
            raise ProviderError(ErrorClass.TIMEOUT, "the simulated cloud did not answer in time to create")
        return self._show(host)

    def delete(self, host_id: str) -> None:
        """Start to remove a host; of one that is gone or going, nothing."""
        answer_lost = self._call("delete")
        with self._alone():
            self._purge()
            host = self._hosts.get(host_id)
            if host is not None and host.gone_at is None:
                now = self._clock()
                takes = seconds(host.config.delete_seconds, host.chance("delete"))
                self._put(replace(host, gone_at=now + timedelta(seconds=takes)))
        if answer_lost:
            raise ProviderError(ErrorClass.TIMEOUT, "the simulated cloud did not answer in time to delete")

    def get(self, machine_uid: str) -> Host | None:
        self._call("get")
        host = self._of(machine_uid)
        return self._show(host) if host else None

    def list(self) -> tuple[Host, ...]:
        """Every host, but for those younger than ``listDelaySeconds``: clouds' lists lag behind."""
        self._call("list")
        self._purge()
        visible = self._clock() - timedelta(seconds=self.settings.list_delay_seconds)
        return tuple(self._show(host) for host in self._hosts.values() if host.created_at <= visible)

    def update(self, request: HostRequest, host_id: str, drained: bool) -> UpdateAnswer:
        """Bring a host to ``request`` as its personality has it."""
        config = self._parsed(request)
        answer_lost = self._call("update")
        with self._alone():
            self._purge()
            host = self._hosts.get(host_id)
            if host is None or host.gone_at is not None:
                raise ProviderError(ErrorClass.NOT_FOUND, f"there is no host {host_id}")
            answer = self._update(host, request, config, drained)
        if answer_lost:
            raise ProviderError(ErrorClass.TIMEOUT, "the simulated cloud did not answer in time to update")
        return answer

    def rebind(self, host_id: str, old: HostIdentity, new: HostIdentity) -> None:
        """As ``providers.base.capabilities.RebindsHosts``."""
        answer_lost = self._call("rebind")
        with self._alone():
            self._purge()
            host = self._hosts.get(host_id)
            if host is None:
                raise ProviderError(ErrorClass.NOT_FOUND, f"there is no host {host_id}")
            now = host.request.identity
            if not _is_of(now, new):
                if not _is_of(now, old) or self._by_uid.get(new.machine_uid, host_id) != host_id:
                    raise ProviderError(ErrorClass.CONFLICT, f"host {host_id} is not that of Machine {old.name}")
                del self._by_uid[now.machine_uid]
                self._put(host.rebound(new))
        if answer_lost:
            raise ProviderError(ErrorClass.TIMEOUT, "the simulated cloud did not answer in time to rebind")

    def reboot(self, host_id: str, attempt: str) -> None:
        """As ``providers.base.capabilities.RebootsHosts``."""
        answer_lost = self._call("reboot")
        with self._alone():
            self._purge()
            host = self._hosts.get(host_id)
            if host is None or host.gone_at is not None:
                raise ProviderError(ErrorClass.NOT_FOUND, f"there is no host {host_id}")
            if host.reboot is None or host.reboot.attempt != attempt:
                self._put(host.booted_anew(attempt, self._clock()))
        if answer_lost:
            raise ProviderError(ErrorClass.TIMEOUT, "the simulated cloud did not answer in time to reboot")

    def latency(self) -> float:
        """Seconds that the next API call takes."""
        return seconds(self.settings.api_seconds, self._random)

    def adjust(self, settings: Cloud) -> None:
        """Take over what ``settings`` says explicitly (its name and seed stay what they were)."""
        settings_given = {name: getattr(settings, name) for name in settings.model_fields_set - {"name", "seed"}}
        if settings_given:
            self.settings = self.settings.model_copy(update=settings_given)

    # What its operators see and do: the kubelets, people, and the simulation's bad luck. These never fail.

    def booted(self) -> Iterator[SimulatedHost]:
        """Hosts that have come up and are not gone, zombies left out: those whose kubelet has registered a Node."""
        now = self._clock()
        self._purge()
        return (host for host in self._hosts.values() if host.has_registered(now))

    def host(self, machine_uid: str) -> SimulatedHost | None:
        return self._of(machine_uid)

    def used(self) -> tuple[int, int]:
        """Hosts and their cpus, as the quota counts them."""
        self._purge()
        return len(self._hosts), self._cpus

    def hosts(self) -> tuple[Host, ...]:
        """Every host as it is, whatever the cloud's API would say now."""
        self._purge()
        return tuple(self._show(host) for host in self._hosts.values())

    @property
    def revision(self) -> int:
        """Another one whenever somebody has changed a host, or one has vanished."""
        self._purge()
        return self._revision

    def next_change_at(self) -> datetime | None:
        """When a host will next change by itself; None if all is still. Found once, and kept until then."""
        now, known = self._clock(), self._upcoming
        if known is not None and known[0] == self.revision and (known[1] is None or known[1] > now):
            return known[1]
        changes = (host.next_change_after(now) for host in self._hosts.values())
        found = min((moment for moment in changes if moment is not None), default=None)
        self._upcoming = (self.revision, found)
        return found

    def outage(self, until: datetime) -> None:
        """Every call fails as Unavailable until then."""
        self._outage_until = until

    def break_host(self, machine_uid: str) -> None:
        """Its hardware fails now."""
        self._change(machine_uid, fails_at=self._clock())

    def stop_host(self, machine_uid: str) -> None:
        """Somebody switched it off."""
        self._change(machine_uid, stopped_at=self._clock())

    def lose_host(self, machine_uid: str) -> None:
        """It is gone at once, without anybody having asked (deleted by hand in the provider's console)."""
        self._change(machine_uid, gone_at=self._clock())
        self._purge()

    def _change(self, machine_uid: str, **changes: datetime) -> None:
        with self._alone():
            host = self._of(machine_uid)
            if host is not None:
                self._put(replace(host, **changes))  # type: ignore[arg-type]  # datetimes by name, checked by replace

    def _update(
        self, host: SimulatedHost, request: HostRequest, config: SimulatedMachineConfig, drained: bool
    ) -> UpdateAnswer:
        now = self._clock()
        if host.request_at(now).spec_hash == request.spec_hash:
            return Updated()
        running = host.update
        if running is not None and running.done_at > now:
            if running.request.spec_hash == request.spec_hash:
                return InProgress((running.done_at - now).total_seconds(), "the host is being changed")
            raise ProviderError(ErrorClass.CONFLICT, f"host {host.id} is busy with another change")
        match config.updates:
            case Updates.REPLACE:
                return NeedsReplacement("simulated hosts with updates: Replace are never changed in place")
            case Updates.REFUSE:
                raise ProviderError(
                    ErrorClass.UNSUPPORTED_CHANGE,
                    "simulated hosts with updates: Refuse are neither changed nor replaced",
                )
            case Updates.DRAIN_THEN_IN_PLACE if not drained:
                return NeedsDrain("simulated hosts with updates: DrainThenInPlace restart to be changed")
            case _ if request.versions.kubelet in self.broken_versions:
                return InProgress(5.0, f"{request.versions.kubelet} does not run, and the host went back", failed=True)
            case _:
                takes = seconds(config.update_seconds, host.chance(f"update/{request.spec_hash}"))
                changing = host.start_update(request, config, now, now + timedelta(seconds=takes))
                self._put(changing)
                return InProgress(takes, "the host is being changed") if takes > 0 else Updated()

    def _parsed(self, request: HostRequest) -> SimulatedMachineConfig:
        try:
            config = parse(request.config)
        except ValidationError as error:
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, _first_line(error)) from error
        self.adjust(config.cloud)
        return config

    def _call(self, call: str) -> bool:
        """Count one API call; whether its answer will get lost. Raises if it fails before doing anything."""
        now = self._clock()
        if self._outage_until is not None and now < self._outage_until:
            raise ProviderError(ErrorClass.UNAVAILABLE, "the simulated cloud is down")
        if self.settings.error_rate and self._random.random() < self.settings.error_rate:
            error_class = self._random.choice([ErrorClass.UNAVAILABLE, ErrorClass.INTERNAL, ErrorClass.RATE_LIMITED])
            raise ProviderError(error_class, f"the simulated cloud failed to {call}")
        return bool(self.settings.lost_answer_rate) and self._random.random() < self.settings.lost_answer_rate

    def _zone_for(self, config: SimulatedMachineConfig, failure_domain: str) -> str:
        zones, wanted = self.settings.zones, config.zone or failure_domain
        if not zones:
            return wanted
        if wanted and wanted not in zones:
            known = ", ".join(sorted(zones))
            raise ProviderError(ErrorClass.INVALID_CONFIGURATION, f"there is no zone {wanted!r}; known: {known}")
        for zone in [wanted] if wanted else zones:
            if self._in_zone[zone] < zones[zone]:
                return zone
        where = f"zone {wanted}" if wanted else f"any of the zones {', '.join(zones)}"
        raise ProviderError(ErrorClass.STOCK_OUT, f"no {config.instance_type} left in {where}")

    def _check_quota(self, config: SimulatedMachineConfig) -> None:
        quota = self.settings.quota
        if quota.hosts is not None and len(self._hosts) + 1 > quota.hosts:
            raise ProviderError(
                ErrorClass.QUOTA_EXCEEDED, f"hosts: {len(self._hosts)} of {quota.hosts} are used, 1 more was asked for"
            )
        if quota.cpus is not None and self._cpus + config.cpus > quota.cpus:
            raise ProviderError(
                ErrorClass.QUOTA_EXCEEDED,
                f"cpus: {self._cpus} of {quota.cpus} are used, {config.cpus} more were asked for",
            )

    def _free_name(self, request: HostRequest) -> str:
        """The Machine's name; a namesake of another namespace gets the UID's beginning appended."""
        name = request.identity.name[:63]
        if self._names[name]:
            return f"{name[:54]}-{request.identity.machine_uid[:8]}"
        return name

    def _of(self, machine_uid: str) -> SimulatedHost | None:
        self._purge()
        host_id = self._by_uid.get(machine_uid)
        return self._hosts[host_id] if host_id else None

    def _put(self, host: SimulatedHost) -> None:
        if self._journal:
            self._journal.put(host)
        self._keep(host)

    def _keep(self, host: SimulatedHost) -> None:
        self._revision += 1
        self._count(self._hosts.get(host.id), -1)
        self._count(host, 1)
        self._hosts[host.id] = host
        self._by_uid[host.request.identity.machine_uid] = host.id
        self._shown.pop(host.id, None)
        if host.gone_at is not None:
            heapq.heappush(self._vanishing, (host.gone_at, host.id))

    def _count(self, host: SimulatedHost | None, by: int) -> None:
        if host is not None:
            for counted, what in ((self._names, host.name), (self._in_zone, host.zone)):
                counted[what] += by
                if not counted[what]:
                    del counted[what]
            self._cpus += by * host.config.cpus

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process changes this cloud meanwhile, and what others have changed before is known."""
        if self._shared is None:
            yield
            return
        with self._shared.alone():
            self._catch_up()
            yield

    def _catch_up(self) -> None:
        """What other processes have written since the last look."""
        news: Iterable[SimulatedHost | str] = self._shared.news() if self._shared is not None else ()
        for change in news:
            if isinstance(change, str):
                self._drop(change)
                continue
            known = self._hosts.get(change.id)
            if known is not None and self._by_uid.get(known.request.identity.machine_uid) == change.id:
                del self._by_uid[known.request.identity.machine_uid]
            self._keep(change)
            self._serial = max(self._serial, change.serial)

    def _purge(self) -> None:
        self._catch_up()
        now = self._clock()
        while self._vanishing and self._vanishing[0][0] <= now:
            _, host_id = heapq.heappop(self._vanishing)
            host = self._drop(host_id)
            if host is not None and self._journal:
                self._journal.forget(host)

    def _drop(self, host_id: str) -> SimulatedHost | None:
        host = self._hosts.pop(host_id, None)
        if host is None:
            return None
        self._revision += 1
        self._count(host, -1)
        self._shown.pop(host_id, None)
        if self._by_uid.get(host.request.identity.machine_uid) == host_id:
            del self._by_uid[host.request.identity.machine_uid]
        return host

    def _show(self, host: SimulatedHost) -> Host:
        now = self._clock()
        shown = self._shown.get(host.id)
        if shown is None or (shown[1] is not None and shown[1] <= now):
            shown = (as_host(host, now), host.next_change_after(now))
            self._shown[host.id] = shown
        return shown[0]


def _is_of(now: HostIdentity, other: HostIdentity) -> bool:
    """A host without a mark was made before there were any."""
    marks = {now.management_cluster, other.management_cluster}
    return now.machine_uid == other.machine_uid and (len(marks) == 1 or not now.management_cluster)


def _first_line(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"

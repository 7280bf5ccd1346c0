"""One simulated host: what happened to it and when, from which follows what it is at any moment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from providers.base.contract import Address, Host, HostIdentity, HostRequest, HostState
from providers.simulated.config import Cloud, SimulatedMachineConfig, seconds


@dataclass(frozen=True, slots=True)
class Update:
    """A change in place: until ``done_at`` the host still is what it was, and its kubelet is down."""

    request: HostRequest
    config: SimulatedMachineConfig
    since: datetime
    done_at: datetime


@dataclass(frozen=True, slots=True)
class Reboot:
    """The last one. ``number``: how many there were; until ``done_at`` the kubelet is down."""

    attempt: str
    number: int
    done_at: datetime


@dataclass(frozen=True, slots=True)
class SimulatedHost:
    """A host of the simulated cloud. ``running_at`` None: it will never come up. Times may lie in the future."""

    id: str
    serial: int
    cloud: str
    seed: int
    name: str
    zone: str
    request: HostRequest
    config: SimulatedMachineConfig
    created_at: datetime
    running_at: datetime | None
    ready_at: datetime | None
    zombie: bool = False
    fails_at: datetime | None = None
    stopped_at: datetime | None = None
    update: Update | None = None
    gone_at: datetime | None = None
    reboot: Reboot | None = None

    def chance(self, purpose: str) -> Random:
        """Dice of this host for one purpose; the same whenever they are asked for."""
        return _chance(self.seed, self.request.identity.machine_uid, purpose)

    def state_at(self, now: datetime) -> HostState:
        if self.gone_at is not None:
            return HostState.DELETING
        if self.fails_at is not None and self.fails_at <= now:
            return HostState.FAILED
        if self.stopped_at is not None and self.stopped_at <= now:
            return HostState.STOPPED
        if self.running_at is None or now < self.running_at:
            return HostState.PENDING
        return HostState.UPDATING if self.is_updating(now) else HostState.RUNNING

    def failure_at(self, now: datetime) -> str:
        return "the host did not boot" if self.running_at is None else "the host's hardware failed"

    def is_updating(self, now: datetime) -> bool:
        return self.update is not None and self.update.since <= now < self.update.done_at

    def request_at(self, now: datetime) -> HostRequest:
        return self.update.request if self.update is not None and self.update.done_at <= now else self.request

    def config_at(self, now: datetime) -> SimulatedMachineConfig:
        return self.update.config if self.update is not None and self.update.done_at <= now else self.config

    def start_update(
        self, request: HostRequest, config: SimulatedMachineConfig, now: datetime, done_at: datetime
    ) -> SimulatedHost:
        """The host with a change begun; an earlier finished change becomes what the host is."""
        return replace(
            self, request=self.request_at(now), config=self.config_at(now), update=Update(request, config, now, done_at)
        )

    def booted_anew(self, attempt: str, now: datetime) -> SimulatedHost:
        """The host as it boots; one that was switched off comes up, broken hardware stays so."""
        takes = seconds(self.config_at(now).boot_seconds, self.chance(f"reboot/{attempt}"))
        number = self.reboot.number + 1 if self.reboot else 1
        return replace(self, stopped_at=None, reboot=Reboot(attempt, number, now + timedelta(seconds=takes)))

    def rebooted_at(self, now: datetime) -> str:
        """The attempt that has come to its end."""
        return self.reboot.attempt if self.reboot is not None and self.reboot.done_at <= now else ""

    def rebound(self, identity: HostIdentity) -> SimulatedHost:
        """The same host, as that of another Machine object."""
        update = self.update
        if update is not None:
            update = replace(update, request=replace(update.request, identity=identity))
        return replace(self, request=replace(self.request, identity=identity), update=update)

    def has_registered(self, now: datetime) -> bool:
        """Whether its kubelet has registered a Node at some time (and the host still exists)."""
        return not self.zombie and self.running_at is not None and self.running_at <= now

    def kubelet_runs(self, now: datetime) -> bool:
        boots = self.reboot is not None and now < self.reboot.done_at
        return self.has_registered(now) and self.state_at(now) is HostState.RUNNING and not boots

    def next_change_after(self, now: datetime) -> datetime | None:
        """When it will next change by itself."""
        moments = [
            self.running_at,
            self.ready_at,
            self.fails_at,
            self.gone_at,
            self.update.done_at if self.update else None,
            self.reboot.done_at if self.reboot else None,
        ]
        return min((moment for moment in moments if moment is not None and moment > now), default=None)

    def addresses(self) -> tuple[Address, ...]:
        number = self.serial % (1 << 16)
        address = f"10.{64 + self.serial // (1 << 16) % 64}.{number >> 8}.{number & 255}"
        return Address("InternalIP", address), Address("Hostname", self.name)


def provider_id_of(host: SimulatedHost) -> str:
    return f"simulated://{host.cloud}/{host.id}"


def as_host(host: SimulatedHost, now: datetime) -> Host:
    """What the cloud shows of ``host`` at ``now``."""
    request, state = host.request_at(now), host.state_at(now)
    up = host.running_at is not None and host.running_at <= now
    return Host(
        id=host.id,
        machine_uid=request.identity.machine_uid,
        name=host.name,
        provider_id=provider_id_of(host),
        state=state,
        spec_hash=request.spec_hash,
        addresses=host.addresses() if up else (),
        failure=host.failure_at(now) if state is HostState.FAILED else "",
        failure_domain=host.zone,
        kubelet_version=request.versions.kubelet,
        created_at=host.created_at,
        management_cluster=request.identity.management_cluster,
        rebooted=host.rebooted_at(now),
    )


def born(
    cloud: Cloud, serial: int, asked: tuple[HostRequest, SimulatedMachineConfig], place: tuple[str, str], now: datetime
) -> SimulatedHost:
    """A new host of ``asked`` under the name and in the zone of ``place``; its fate is drawn here."""
    (request, config), (name, zone) = asked, place
    uid = request.identity.machine_uid
    boots = _chance(cloud.seed, uid, f"boot/{serial}")
    comes_up = boots.random() >= config.boot_failure_rate
    boot = timedelta(seconds=seconds(config.boot_seconds, boots))
    running_at = now + boot if comes_up else None
    ready_at = running_at + timedelta(seconds=seconds(config.join_seconds, boots)) if running_at else None
    fails_at = None if comes_up else now + boot
    if comes_up and config.mean_hours_between_failures > 0:
        hours = boots.expovariate(1 / config.mean_hours_between_failures)
        fails_at = now + boot + timedelta(hours=min(hours, 24 * 365 * 10))
    return SimulatedHost(
        id=f"sim-{serial:06d}",
        serial=serial,
        cloud=cloud.name,
        seed=cloud.seed,
        name=name,
        zone=zone,
        request=request,
        config=config,
        created_at=now,
        running_at=running_at,
        ready_at=ready_at,
        zombie=boots.random() < config.zombie_rate,
        fails_at=fails_at,
    )


def _chance(seed: int, machine_uid: str, purpose: str) -> Random:
    return Random(f"{seed}/{machine_uid}/{purpose}")  # noqa: S311 (luck, not secrets)

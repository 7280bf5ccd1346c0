"""A Machine's request and where it joins → the order for its bootstrap data, or why there can be none."""

from __future__ import annotations

from dataclasses import dataclass, replace

from api.conditions import Reason
from api.noderules import kubelet_may_set
from controllers.bootstrap import cloud_config, shell
from controllers.bootstrap.credentials import Refused, secret_key, token_ids
from controllers.bootstrap.join import Install, Join, Refusal
from controllers.bootstrap.plan import join_steps
from controllers.bootstrap.settings import Settings
from controllers.bootstrap.steps import Steps
from controllers.kernel.bootstrapping import BootstrapOrder, JoinTarget, NoTarget, Support
from controllers.kernel.digest import digest
from controllers.kernel.refs import Key, Ref
from providers.base.contract import BootstrapFormat, HostRequest

NO_TOKEN = "000000.0000000000000000"  # noqa: S105 (no token)
"""Stands for the token while it is checked whether anything can be made."""
_FIELDS = {
    "kubelet_version": "spec.versions.kubelet",
    "container_runtime": "spec.versions.containerRuntime",
    "server": "spec.bootstrap.endpoint",
}
_RENDERED: tuple[BootstrapFormat, ...] = ("cloud-config", "script")


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a host with a token gets. The same bytes for the same token."""

    join: Join
    format: BootstrapFormat

    def __call__(self, token: str) -> bytes:
        """Raises ValueError if there are no steps for it, which ``order_for`` has seen to."""
        steps = join_steps(replace(self.join, token=token))
        if not isinstance(steps, Steps):
            raise ValueError("; ".join(f"{each.field}: {each.message}" for each in steps))
        return shell.render(steps).encode() if self.format == "script" else cloud_config.render(steps)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose data, and where its Node will be. ``cluster_name``: for a label, "" for none."""

    machine: Ref
    request: HostRequest
    settings: Settings
    support: Support
    cluster: Key | None = None


def order_for(wanted: Wanted, target: JoinTarget | NoTarget) -> BootstrapOrder | Refused:
    """Decided before anything is made: neither token nor host is there if this refuses."""
    if isinstance(target, NoTarget):
        return Refused(target.reason, target.message)
    form = next((each for each in wanted.support.formats if each in _RENDERED), None)
    if form is None:
        text = (
            "its provider hands no bootstrap data to its hosts: remove spec.bootstrap of the Machine and its Cluster, "
            "and name user data in the provider's configuration if it takes some"
        )
        return Refused(str(Reason.FORMAT_NOT_SUPPORTED), text)
    join = _join(wanted, target)
    steps = join_steps(join)
    if not isinstance(steps, Steps):
        return _refused(steps)
    return BootstrapOrder(
        machine=wanted.machine,
        secret=secret_key(wanted.machine.key),
        ids=token_ids(wanted.machine.uid),
        format=form,
        digest=digest([form, repr(join)], 16),
        render=Rendering(join, form),
        cluster=wanted.cluster,
        cluster_name=wanted.request.identity.cluster,
    )


def _join(wanted: Wanted, target: JoinTarget) -> Join:
    request, settings = wanted.request, wanted.settings
    return Join(
        kubelet_version=request.versions.kubelet or target.version,
        server=target.server,
        ca=target.ca,
        token=NO_TOKEN,
        cluster_version=target.version,
        container_runtime=request.versions.container_runtime,
        labels={key: value for key, value in sorted(request.node.labels.items()) if kubelet_may_set(key)},
        taints=request.node.taints,
        install=Install(settings.mirror, settings.architecture),
        ignore_preflight_errors=settings.ignore_preflight_errors,
    )


def _refused(found: tuple[Refusal, ...]) -> Refused:
    first = found[0]
    reason = Reason.VERSION_SKEW if first.skew else Reason.INVALID_BOOTSTRAP_SPEC
    field = _FIELDS.get(first.field, f"spec.bootstrap ({first.field})")
    return Refused(str(reason), f"{field}: {first.message}")

"""A Machine's request and where it joins → the order for its bootstrap data, or why there can be none."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType

from api.conditions import Reason
from api.noderules import kubelet_may_set
from controllers.bootstrap import checks, cloud_config, ignition, shell
from controllers.bootstrap.authorities import AUTHORITIES, KeyPair
from controllers.bootstrap.calls import Refused
from controllers.bootstrap.control_plane import ControlPlane
from controllers.bootstrap.credentials import secret_key, token_ids
from controllers.bootstrap.founding import Founded
from controllers.bootstrap.join import Join
from controllers.bootstrap.plan import join_steps, preparing_steps
from controllers.bootstrap.refusal import Refusal
from controllers.bootstrap.settings import PATH, Settings
from controllers.bootstrap.steps import Steps
from controllers.bootstrap.upgrade import no_other_version, upgrade_steps
from controllers.kernel.bootstrapping import (
    BootstrapOrder,
    FileSource,
    FoundingOrder,
    JoinTarget,
    NoTarget,
    Support,
)
from controllers.kernel.memory import digest
from controllers.kernel.refs import Key, Ref
from providers.base.contract import BootstrapFormat, HostContent, HostRequest, KubeletUpgrade
from providers.base.user_data import TooLarge, UserDataLimit, fit

NO_TOKEN = "000000.0000000000000000"  # noqa: S105 (no token)
"""Stands for the token while it is checked whether anything can be made."""
_KEPT = 512
"""Answers that are remembered; each holds a CA and labels, a few KiB."""
_RENDERED: tuple[BootstrapFormat, ...] = ("cloud-config", "script", "ignition")


_NO_CONTENTS: Mapping[tuple[str, str], bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a host with a token gets. The same bytes for the same token."""

    join: Join
    format: BootstrapFormat

    def __call__(
        self, token: str, contents: Mapping[tuple[str, str], bytes] = _NO_CONTENTS, founded: Founded | None = None
    ) -> bytes:
        """``contents``: see ``Join``; ``founded``: what a control plane gets besides. Raises ValueError if there are no
        steps for it; ``order_for`` has seen to it.
        """
        join = replace(self.join, token=token or NO_TOKEN, contents=contents)
        if founded is not None and join.control_plane is not None:
            control_plane = replace(join.control_plane, initializes=founded.initializes, pki=founded.pki)
            join = replace(join, ca=founded.ca, control_plane=control_plane)
        steps = join_steps(join)
        if not isinstance(steps, Steps):
            raise ValueError("; ".join(f"{each.field}: {each.message}" for each in steps))
        match self.format:
            case "script":
                return shell.render(steps).encode()
            case "ignition":
                return ignition.render(steps)
            case _:
                return cloud_config.render(steps)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Whose data, and where its Node will be. ``now``: for the dates of the CA. The last two: of a control plane."""

    machine: Ref
    request: HostRequest
    settings: Settings
    support: Support
    now: datetime
    cluster: Key | None = None
    control_plane: ControlPlane | None = None
    founding: FoundingOrder | None = None


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
    found = _checked(_question(_join(wanted, target), form, wanted.support.limit))
    if isinstance(found, Refused):
        return found
    ca = found.render.join.ca
    if ca and (expired := checks.late_ca(ca, wanted.now)):
        return _refused((expired,))
    return BootstrapOrder(
        machine=wanted.machine,
        secret=secret_key(wanted.machine.key),
        ids=token_ids(wanted.machine.uid),
        format=form,
        digest=found.digest,
        render=found.render,
        warnings=found.warnings,
        cluster=wanted.cluster,
        cluster_name=wanted.request.identity.cluster,
        founding=wanted.founding,
        contents=_sources(wanted.settings),
        limit=wanted.support.limit,
    )


def _sources(settings: Settings) -> tuple[FileSource, ...]:
    return tuple(
        FileSource(file.content_from.secret.name, file.content_from.secret.key, f"{PATH}.files[{index}].contentFrom")
        for index, file in enumerate(settings.spec.files or ())
        if file.content_from is not None
    )


def upgrade_for(wanted: Wanted, target: JoinTarget | NoTarget) -> KubeletUpgrade:
    """For a provider that runs scripts on its hosts; another one changes its hosts by other means, or not at all."""
    if "script" not in wanted.support.formats:
        return KubeletUpgrade(why_not="its provider runs nothing on its hosts")
    if isinstance(target, NoTarget):
        return KubeletUpgrade(why_not=target.message)
    join = _join(wanted, target)
    steps = upgrade_steps(join)
    if not isinstance(steps, Steps):
        return KubeletUpgrade(why_not=_refused(steps).message)
    contents = [] if join.control_plane is not None else _sources(wanted.settings)
    held = tuple(HostContent(each.secret, each.key, each.field) for each in contents)
    return KubeletUpgrade(shell.render(steps), no_other_version(join), held)


def preparation_for(wanted: Wanted, server: str) -> str:
    """A script for a host that can't join yet; "" where none can be made or its provider takes none.

    ``server``: URL of the API that it is to join. Files whose content is in Secrets come with the bootstrap data alone,
    and later steps may need them.
    """
    may = wanted.support.prepares and wanted.request.versions.kubelet and not _sources(wanted.settings)
    steps = preparing_steps(_join(wanted, JoinTarget(server, "", ""))) if may else None
    return shell.render(steps) if isinstance(steps, Steps) else ""


@dataclass(frozen=True, slots=True)
class _Question:
    """Whether a host can join so; ``parts``: all that the answer depends on but the settings, which are compared as
    objects: equal ones are the same (``settings.effective``).
    """

    parts: tuple[Hashable, ...]
    settings: int
    join: Join = field(compare=False)
    format: BootstrapFormat = field(compare=False)
    limit: UserDataLimit | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Checked:
    digest: str
    render: Rendering
    warnings: tuple[str, ...]


def _question(join: Join, form: BootstrapFormat, limit: UserDataLimit | None) -> _Question:
    versions = (join.kubelet_version, join.cluster_version, join.container_runtime)
    parts = (versions, join.server, join.ca, tuple(join.labels.items()), join.taints, form, limit, join.control_plane)
    return _Question(parts, id(join.settings), join, form, limit)


@lru_cache(maxsize=_KEPT)
def _checked(asked: _Question) -> _Checked | Refused:
    """Remembered for Machines of one template and from reconcile to reconcile: it renders all of the data. Knows no
    moment; the dates of the CA are looked at each time. The question keeps its settings, so no others get their id.
    """
    join = asked.join
    steps = join_steps(join)
    if not isinstance(steps, Steps):
        return _refused(steps)
    render = Rendering(join, asked.format)
    fitted = fit(_sized(render)(NO_TOKEN), asked.limit)
    if isinstance(fitted, TooLarge):
        return Refused(str(Reason.DATA_TOO_LARGE), f"spec.bootstrap: {fitted.message}")
    return _Checked(digest([asked.format, repr(join)], 16), render, checks.warnings(join))


def _sized(render: Rendering) -> Rendering:
    """The same with authorities as large as those that people bring (RSA 4096)."""
    found = render.join.control_plane
    if found is None:
        return render
    pki = {each.suffix: KeyPair("-" * 2048, "-" * 3400) for each in AUTHORITIES}
    return replace(render, join=replace(render.join, control_plane=replace(found, pki=pki)))


def _join(wanted: Wanted, target: JoinTarget) -> Join:
    request = wanted.request
    return Join(
        control_plane=wanted.control_plane,
        kubelet_version=request.versions.kubelet or target.version,
        server=target.server,
        ca=target.ca,
        token=NO_TOKEN,
        cluster_version=target.version,
        container_runtime=request.versions.container_runtime,
        labels={key: value for key, value in sorted(request.node.labels.items()) if kubelet_may_set(key)},
        taints=request.node.taints,
        settings=wanted.settings,
    )


def _refused(found: tuple[Refusal, ...]) -> Refused:
    first = found[0]
    reason = Reason.VERSION_SKEW if first.skew else Reason.INVALID_BOOTSTRAP_SPEC
    return Refused(str(reason), f"{checks.where(first.field)}: {first.message}")

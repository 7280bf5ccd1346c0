"""View → Observed: the cluster as the autoscaler sees it, and what was said about classes of requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from api import provisioning_names
from controllers.autoscaler import observe as autoscaler
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.requests import Request
from controllers.kernel.conditions import find, is_true, parse_time
from controllers.kernel.refs import CONFIG_MAP, NODE, POD, Key, Obj, is_deleting
from controllers.kernel.view import View
from controllers.provisioningrequest.classes import BUILT_IN, ProvisioningClass
from controllers.provisioningrequest.consumers import Waiting, waiting_for_place
from controllers.provisioningrequest.options import ClassDefaults, ProvisioningOptions, read_defaults
from controllers.scheduling.reading import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """``autoscaler``: what it sees of the cluster. ``shaken``: Nodes that are not Ready and may well be again soon.
    ``defaults`` by class. ``waiting``: pods that consume a request and found no Node.
    """

    autoscaler: autoscaler.Observed
    options: ProvisioningOptions = field(default_factory=ProvisioningOptions)
    classes: Mapping[str, ProvisioningClass] = field(default_factory=lambda: dict(BUILT_IN))
    defaults: Mapping[str, ClassDefaults] = field(default_factory=dict)
    shaken: frozenset[str] = frozenset()
    waiting: tuple[Waiting, ...] = ()

    @property
    def now(self) -> datetime:
        return self.autoscaler.cluster.now

    @property
    def requests(self) -> tuple[Request, ...]:
        return self.autoscaler.cluster.requests

    def defaults_of(self, request: Request) -> ClassDefaults:
        return self.defaults.get(request.class_name) or ClassDefaults(limits=self.options.limits)

    def parameters_of(self, request: Request) -> dict[str, str]:
        return {**self.defaults_of(request).parameters, **request.parameters}


@dataclass(frozen=True, slots=True)
class Setting:
    """What a reservation was made with."""

    autoscaler: AutoscalerOptions
    options: ProvisioningOptions
    classes: Mapping[str, ProvisioningClass]


def observe(view: View, setting: Setting, reader: Reader) -> Observed:
    config = view.get(CONFIG_MAP, Key(setting.autoscaler.namespace, provisioning_names.PROVISIONING_CLASSES))
    options = setting.options
    return Observed(
        autoscaler=autoscaler.observe(view, setting.autoscaler, reader=reader),
        options=options,
        classes=setting.classes,
        defaults=read_defaults((config or {}).get("data") or {}, options.limits),
        shaken=frozenset(node["metadata"]["name"] for node in view.all(NODE) if _is_shaken(node, view.now, options)),
        waiting=waiting_for_place(view.all(POD)),
    )


def _is_shaken(node: Obj, now: datetime, options: ProvisioningOptions) -> bool:
    conditions = (node.get("status") or {}).get("conditions")
    if is_deleting(node) or is_true(conditions, "Ready"):
        return False
    since = parse_time((find(conditions, "Ready") or {}).get("lastTransitionTime"))
    return since is not None and now - since < options.node_patience

"""The reconciler of ProvisioningRequests: one key for all of them, since they share the room that there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from api import provisioning_names
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.reconciler import GATHER, AutoscalerReconciler, hopes_the_same, never_mind
from controllers.kernel.conditions import is_true
from controllers.kernel.plan import Plan
from controllers.kernel.reconciler import Wake
from controllers.kernel.refs import (
    CLUSTER,
    CONFIG_MAP,
    MACHINE,
    NODE,
    POD_TEMPLATE,
    PROVISIONING_REQUEST,
    Key,
    Kind,
    Obj,
)
from controllers.kernel.view import HostNeed, HostReads, ManagementCluster, View
from controllers.provisioningrequest.classes import BUILT_IN, ProvisioningClass
from controllers.provisioningrequest.observe import Observed, Setting, observe
from controllers.provisioningrequest.options import ProvisioningOptions
from controllers.provisioningrequest.plan import plan
from controllers.scheduling.reading import Reader


class ProvisioningRequestReconciler:
    """Reconciler[Observed]. Its key is the ConfigMap with the defaults of classes, there or not.

    ``autoscaler``: what counts as a group and how far it may grow; None: the defaults. ``reader``: see AutoscalerRoom.
    """

    name = "provisioningrequest"
    kind: Kind = CONFIG_MAP
    reports_unreachable = True

    def __init__(
        self,
        autoscaler: AutoscalerOptions | None = None,
        options: ProvisioningOptions | None = None,
        classes: Mapping[str, ProvisioningClass] | None = None,
        reader: Reader | None = None,
    ) -> None:
        like = AutoscalerReconciler(replace(autoscaler or AutoscalerOptions(), provisioning_requests=True))
        self.setting = Setting(
            autoscaler=like.options, options=options or ProvisioningOptions(), classes={**(classes or {}), **BUILT_IN}
        )
        self.sees: Key | ManagementCluster = like.sees
        self.key = Key(like.options.namespace, provisioning_names.PROVISIONING_CLASSES)
        self.reads: tuple[Kind, ...] = like.reads
        self.parts: Mapping[Kind, tuple[Key, ...]] = like.parts
        """Requests, their pods and PodTemplates are where the pods are; defaults of classes lie at home."""
        self._reader = reader or Reader()
        self.wakes = self._wakes()

    def _wakes(self) -> tuple[Wake, ...]:
        return (
            Wake(PROVISIONING_REQUEST, self._the_key, never_mind, self._soon),
            Wake(POD_TEMPLATE, self._the_key, None, self._soon),
            Wake(MACHINE, self._the_key, hopes_the_same, self._soon),
            Wake(NODE, self._the_key, _as_ready_as_before, self._soon),
            # Requests that a workload cluster had when it was first reached woke nobody.
            Wake(CLUSTER, self._the_key, never_mind, self._soon),
        )

    def needs(self, key: Key, view: View) -> HostNeed | None:
        return None

    def observe(self, key: Key, view: View, hosts: HostReads | None) -> Observed | None:
        return observe(view, self.setting, self._reader) if key == self.key else None

    def plan(self, observed: Observed) -> Plan:
        return plan(observed)

    def _the_key(self, _obj: Obj, _view: View) -> Iterable[Key]:
        return (self.key,)

    def _soon(self, _key: Key, _view: View) -> float:
        return min(GATHER, self.setting.autoscaler.scan_interval.total_seconds())


def _as_ready_as_before(old: Obj, new: Obj) -> bool:
    return _is_ready(old) == _is_ready(new)


def _is_ready(node: Obj) -> bool:
    return is_true((node.get("status") or {}).get("conditions"), "Ready")

"""May this Pod be evicted? The eviction subresource (policy/v1), which honours PodDisruptionBudgets.

Follows kubernetes/pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from typing import Any

from nodewright.apiserver.store.deleting import Deleter
from nodewright.apiserver.store.disruption import Allowance, Budgets, is_ready
from nodewright.apiserver.store.envelope import part
from nodewright.apiserver.store.kernel import Kernel
from nodewright.apiserver.store.selection import key_of
from nodewright.apiserver.store.state import ObjectKey
from nodewright.apiserver.values import ApiError, Cause, DeleteOptions, Obj

_FREE_PHASES = ("Succeeded", "Failed", "Pending")


class Evictor:
    """Evicts Pods."""

    def __init__(self, kernel: Kernel, deleter: Deleter, budgets: Budgets) -> None:
        self._kernel = kernel
        self._deleter = deleter
        self._budgets = budgets

    def evict(self, namespace: str, name: str, body: Any, dry_run: bool = False) -> Obj:
        """Delete a Pod if its budget allows it; gives a Status of code 201.

        Raises ApiError 400 (body), 404, 409 (precondition), 429 (budget), 500 (more than one budget).
        """
        if not isinstance(body, dict) or body.get("kind") != "Eviction":
            raise ApiError.bad_request("the request body must be a policy/v1 Eviction")
        stated = part(body, "metadata").get("name", name)
        if stated != name:
            raise ApiError.bad_request(f"name in URL does not match name in Eviction object: {name} {stated}")
        pods = self._kernel.registry.by_kind("", "v1", "Pod")
        assert pods is not None
        pod = self._kernel.require(pods, namespace, name)
        if not self._is_free(pod):
            self._ask_budgets(pod)
        options = _delete_options(part(body, "deleteOptions"), dry_run)
        self._deleter.delete(pods, namespace, name, options)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _is_free(self, pod: Obj) -> bool:
        phase = (pod.get("status") or {}).get("phase")
        return phase in _FREE_PHASES or bool(pod["metadata"].get("deletionTimestamp"))

    def _ask_budgets(self, pod: Obj) -> None:
        budgets = self._budgets.covering(pod)
        if not budgets:
            return
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "InternalError", text)
        (budget,) = budgets
        # The status in the store may be a step behind, so that the numbers are computed from what is there now.
        allowance = self._budgets.allowance(budget)
        self._budgets.refresh(ObjectKey("poddisruptionbudgets.policy", *key_of(budget)))
        if not is_ready(pod) and _unhealthy_may_go(budget, allowance):
            return
        if allowance.disruptions_allowed <= 0:
            raise _refused(budget, allowance)


def _unhealthy_may_go(budget: Obj, allowance: Allowance) -> bool:
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return allowance.current_healthy >= allowance.desired_healthy > 0


def _refused(budget: Obj, allowance: Allowance) -> ApiError:
    name = budget["metadata"]["name"]
    message = (
        f"The disruption budget {name} needs {allowance.desired_healthy} healthy pods and has "
        f"{allowance.current_healthy} currently"
    )
    if allowance.problem:
        message = f"The disruption budget {name} does not allow evicting pods currently because it failed sync: "
        message += allowance.problem
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError.too_many_requests(text, None, [Cause("", "DisruptionBudget", message)])


def _delete_options(stated: Obj, dry_run: bool) -> DeleteOptions:
    preconditions = part(stated, "preconditions")
    directives, grace = stated.get("dryRun"), stated.get("gracePeriodSeconds")
    return DeleteOptions(
        propagation=stated.get("propagationPolicy") or "",
        uid=str(preconditions.get("uid") or ""),
        resource_version=str(preconditions.get("resourceVersion") or ""),
        grace_seconds=grace if type(grace) is int else None,
        dry_run=dry_run or (isinstance(directives, list) and "All" in directives),
    )

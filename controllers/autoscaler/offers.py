"""MachineClasses that are offered for groups that the autoscaler makes, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from api import names
from api.autoprovision import Offer, OfferError, read_offer
from api.autoscaling import BoundsError
from api.faults import FieldError
from api.validate import validate
from controllers.autoscaler.candidates import OfferedClass, body_of
from controllers.autoscaler.options import AutoscalerOptions
from controllers.autoscaler.templates import shape_of
from controllers.kernel.failure_domains import domains_of
from controllers.kernel.ownership import cluster_of
from controllers.kernel.refs import MACHINE_CLASS, Obj, Ref, annotations_of, is_deleting, key_of, labels_of, ref_of
from controllers.kernel.view import ShapeUnknown, View

_FIELD = f"metadata.annotations[{names.AUTOPROVISION_ANNOTATION}]"


@dataclass(frozen=True, slots=True)
class Offers:
    """``bad``: MachineClass → what is wrong with its offer. ``awaiting``: those whose provider has yet to say what
    their hosts are like.
    """

    offered: tuple[OfferedClass, ...] = ()
    bad: Mapping[Ref, str] = field(default_factory=dict)
    awaiting: frozenset[str] = frozenset()


def read_offers(view: View, options: AutoscalerOptions, *, left_alone: Callable[[Obj], bool]) -> Offers:
    """``left_alone``: whether a MachineDeployment would not be the autoscaler's to scale."""
    offered, bad, awaiting = [], {}, set()
    for body in sorted(view.all(MACHINE_CLASS), key=key_of):
        try:
            found = _offered(body, view, options, left_alone=left_alone)
        except OfferError as error:
            bad[ref_of(MACHINE_CLASS, body)] = f"{_FIELD}: {error}"
            continue
        if found is not None:
            offered.append(found.offered)
            awaiting |= {str(ref_of(MACHINE_CLASS, body))} if found.asked else set()
    return Offers(tuple(offered), bad, frozenset(awaiting))


@dataclass(frozen=True, slots=True)
class _Found:
    offered: OfferedClass
    asked: bool


def _offered(
    machine_class: Obj, view: View, options: AutoscalerOptions, *, left_alone: Callable[[Obj], bool]
) -> _Found | None:
    """None: it is not offered here. Raises OfferError."""
    text = annotations_of(machine_class).get(names.AUTOPROVISION_ANNOTATION)
    if text is None or is_deleting(machine_class):
        return None
    offer = _read(text)
    if isinstance(offer, OfferError):
        raise offer
    if offer is None:
        return None
    plain = OfferedClass(key=key_of(machine_class), offer=offer, labels=_labels(machine_class, options))
    body = body_of(plain)
    if faults := validate(body):
        raise OfferError(*_of_offer(faults[0]))
    if left_alone(body) or _bounds(body, options) is None:
        return None
    shape = shape_of(body, view)
    domains = domains_of(body, cluster_of(body, view))
    if isinstance(shape, ShapeUnknown):
        return _Found(replace(plain, problem=shape.why, domains=domains), shape.asked)
    return _Found(replace(plain, shape=shape, domains=domains), False)


def _labels(machine_class: Obj, options: AutoscalerOptions) -> dict[str, str]:
    """Those that ``--node-group-auto-discovery`` asks for: the groups have to be found by them."""
    asked = {key for each in options.discovery.filters for key, _ in each.labels}
    return {key: value for key, value in labels_of(machine_class).items() if key in asked}


def _bounds(body: Obj, options: AutoscalerOptions) -> object:
    """None: the group would not be found again, so it is not made."""
    try:
        return options.discovery.bounds(body)
    except BoundsError as error:
        raise OfferError("", str(error)) from None


def _of_offer(fault: FieldError) -> tuple[str, str]:
    return fault.path.replace("spec.template.", "template.", 1), fault.message


@lru_cache(maxsize=256)
def _read(text: str) -> Offer | OfferError | None:
    """Read once: the text is looked at in each reconcile."""
    try:
        return read_offer(text)
    except OfferError as error:
        return error

"""What reconcilers have in common when they say which keys a change wakes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from api.selectors import SelectorError, from_label_selector
from controllers.kernel.failure_domains import domains_of
from controllers.kernel.ownership import paused_by
from controllers.kernel.provider_config import CONFIG_FIELDS, class_key
from controllers.kernel.refs import Key, Kind, Obj, is_deleting, key_of, mapping, spec_of
from controllers.kernel.view import CLUSTER_NAME, NAMESPACE, View


def itself(obj: Obj, _view: View) -> Iterable[Key]:
    return (key_of(obj),)


def members_of_cluster(kind: Kind) -> Callable[[Obj, View], Iterable[Key]]:
    """Objects of ``kind`` that carry the Cluster's name."""

    def keys(cluster: Obj, view: View) -> Iterable[Key]:
        return tuple(key_of(obj) for obj in view.indexed(kind, CLUSTER_NAME, str(key_of(cluster))))

    return keys


def same_pause(old: Obj, new: Obj) -> bool:
    """From its owner and Cluster an object reads only whether they are paused or being deleted."""
    return is_deleting(old) == is_deleting(new) and paused_by((old,)) == paused_by((new,))


def named_by_template(kind: Kind) -> Callable[[Obj, View], Iterable[Key]]:
    """Sets of ``kind`` whose template names the MachineClass."""

    def keys(machine_class: Obj, view: View) -> Iterable[Key]:
        own = key_of(machine_class)
        for body in view.indexed(kind, NAMESPACE, own.namespace):
            template = mapping(spec_of(body).get("template"))
            if class_key(spec_of(template), own.namespace) == own:
                yield key_of(body)

    return keys


def same_config(old: Obj, new: Obj) -> bool:
    """From a MachineClass a set reads only the configuration."""
    return all(old.get(name) == new.get(name) for name in CONFIG_FIELDS)


def same_to_sets(old: Obj, new: Obj) -> bool:
    """From its Cluster a set also reads the failure domains."""
    return same_pause(old, new) and domains_of({}, old) == domains_of({}, new)


def selects(body: Obj, labels: Mapping[str, str]) -> bool:
    """Whether the selector of ``body`` matches; an unreadable or empty one matches nothing."""
    try:
        selector = from_label_selector(spec_of(body).get("selector"))
    except (SelectorError, AttributeError, TypeError, ValueError):
        return False
    return not selector.empty and selector.matches(labels)

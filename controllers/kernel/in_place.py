"""Which Machines of a set don't have its template yet, when the set changes Machines instead of replacing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api import names
from controllers.kernel.machine_facts import MachineFacts, is_protected
from controllers.kernel.memory import digest
from controllers.kernel.refs import annotations_of, spec_of
from controllers.kernel.template import FAILURE_DOMAIN, is_made_of, rollout_part

DIGEST_LENGTH = 10


class Revision:
    """What of a template's ``spec`` makes a revision, to compare Machines with; restarts are not part of it.

    ``class_digest``: that of the MachineClass which the template names, "" for none: its configuration is part of it.
    """

    def __init__(self, template: Mapping[str, Any], class_digest: str = "") -> None:
        self.class_digest = class_digest
        self.part = rollout_part(template)
        self.digest = digest(self.part, DIGEST_LENGTH)

    def is_of(self, machine: MachineFacts) -> bool:
        """Whether the Machine was given this template last. Edits that a person made to it since don't count."""
        annotations = annotations_of(machine.body)
        given = annotations.get(names.TEMPLATE_ANNOTATION)
        classes = {annotations.get(names.MACHINE_CLASS_ANNOTATION, ""), machine.class_digest} - {""}
        if self.class_digest and classes and self.class_digest not in classes:
            return False
        if given is not None:
            return given == self.digest
        return is_made_of(spec_of(machine.body), self.part)

    def is_on_its_way(self, machine: MachineFacts) -> bool:
        """Whether the Machine was given this template and its host is not known to be so yet."""
        if self._follows_its_class(machine):
            return True
        known = machine.up_to_date is True or (machine.up_to_date is None and not machine.ready)
        if known or annotations_of(machine.body).get(names.TEMPLATE_ANNOTATION) != self.digest:
            return False
        return is_made_of(spec_of(machine.body), self.part)

    def _follows_its_class(self, machine: MachineFacts) -> bool:
        """It was given the class as it is, and its host is not known to be so; the Machine's spec is no other one."""
        if not machine.has_host or machine.class_digest in {"", self.class_digest}:
            return False
        return annotations_of(machine.body).get(names.MACHINE_CLASS_ANNOTATION) == self.class_digest


def forbids_replacement(machine: Mapping[str, Any]) -> str:
    """What forbids to replace the host of this Machine for the spec that it has now; "" if nothing does."""
    if is_protected(machine):
        return "its membership status (evictable: false)"
    if names.CONTROL_PLANE_HOOK in annotations_of(machine):
        return "its etcd member, which would be lost with the host; its ControlPlane replaces the whole Machine"
    return f"inPlace: {names.InPlace.REQUIRE}" if _requires_in_place(machine) else ""


def _requires_in_place(machine: Mapping[str, Any]) -> bool:
    annotations = annotations_of(machine)
    if annotations.get(names.IN_PLACE_ANNOTATION) != names.InPlace.REQUIRE:
        return False
    part = rollout_part(machine)
    anywhere = {key: value for key, value in part.items() if key != FAILURE_DOMAIN}
    given = annotations.get(names.TEMPLATE_ANNOTATION)
    return given in {digest(part, DIGEST_LENGTH), digest(anywhere, DIGEST_LENGTH)}

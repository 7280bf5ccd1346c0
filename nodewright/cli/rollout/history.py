"""The revisions of a MachineDeployment, read from its MachineSets, and the patch that goes back to one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from api import names
from controllers.kernel.ownership import controller_uid
from controllers.kernel.refs import Obj, annotations_of, is_deleting, uid_of
from controllers.kernel.template import difference, rollout_part, template_hash
from nodewright.cli.exits import CliError
from nodewright.cli.rollout.naming import KIND
from nodewright.cli.rollout.rollout_status import revision_of

CHANGE_CAUSE = "kubernetes.io/change-cause"


@dataclass(frozen=True, slots=True)
class Revision:
    """``template`` is as the user would write it: without the hash by which the MachineSet finds its Machines."""

    number: int
    machine_set: str
    machines: int
    kubelet: str
    cause: str
    remark: str
    template: Mapping[str, Any]


def revisions(deployment: Obj, sets: Iterable[Obj]) -> list[Revision]:
    """Lowest number first; MachineSets that are going, and those without a number, are left out."""
    record = (deployment.get("status") or {}).get("rollback") or {}
    wanted = rollout_part(deployment["spec"]["template"])
    found = []
    for body in sets:
        number = revision_of(body)
        if controller_uid(body) != uid_of(deployment) or is_deleting(body) or not number:
            continue
        template = plain(body["spec"]["template"])
        remark = "wanted" if rollout_part(template) == wanted else ""
        if template_hash(template) == record.get("failedHash"):
            remark = "failed, taken back"
        elif template_hash(template) == record.get("hash"):
            remark = "in force instead"
        found.append(
            Revision(
                number=number,
                machine_set=body["metadata"]["name"],
                machines=int((body.get("status") or {}).get("replicas") or 0),
                kubelet=str(((template.get("spec") or {}).get("versions") or {}).get("kubelet") or ""),
                cause=annotations_of(body).get(CHANGE_CAUSE, ""),
                remark=remark,
                template=template,
            )
        )
    return sorted(found, key=lambda revision: (revision.number, revision.machine_set))


def plain(template: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(template.get("metadata") or {})
    metadata["labels"] = {k: v for k, v in (metadata.get("labels") or {}).items() if k != names.TEMPLATE_HASH_LABEL}
    return {**template, "metadata": metadata}


def one_of(found: list[Revision], number: int) -> Revision:
    """Raises CliError if there is none of this number."""
    there = [revision for revision in found if revision.number == number]
    if not there:
        known = ", ".join(str(revision.number) for revision in found) or "none"
        raise CliError(f"there is no revision {number}", f"There are: {known}; spec.revisionHistoryLimit keeps more")
    return there[-1]


def to_return_to(deployment: Obj, found: list[Revision], number: int) -> Revision:
    """The revision that an undo means; 0: the one in force after an automatic rollback, else the one before this.

    Raises CliError if there is none.
    """
    name = deployment["metadata"]["name"]
    if number:
        return one_of(found, number)
    in_force = [revision for revision in found if revision.remark == "in force instead"]
    if in_force:
        return in_force[-1]
    wanted = rollout_part(deployment["spec"]["template"])
    earlier = [revision for revision in found if rollout_part(revision.template) != wanted]
    if not earlier:
        raise CliError(f'{KIND} "{name}" has no earlier revision', "spec.revisionHistoryLimit says how many are kept")
    return earlier[-1]


def undo(deployment: Obj, revision: Revision) -> dict[str, Any]:
    """The merge patch of the deployment; {} if it has that template already."""
    change = difference(deployment["spec"]["template"], revision.template)
    return {"spec": {"template": change}} if change else {}

"""Generated from the models of api/ by ``make generate``; edits are overwritten."""

from __future__ import annotations

from typing import Final

from api.behaviour import Absent, Behaviour, Change, Fields

MACHINE_SPEC: Final = Fields(
    {
        "metadata": Behaviour(Change.NODE),
        "taints": Behaviour(Change.NODE),
        "providerConfig": Behaviour(Change.HOST, hashed_as="config"),
        "providerSpec": Behaviour(Change.HOST, hashed_as="config"),
        "versions": Behaviour(Change.HOST, hashed_as="versions"),
        "bootstrap": Behaviour(Change.HOST, empty_counts=True),
        "configSource": Behaviour(Change.HOST, absent=Absent.NULL),
        "providerID": Behaviour(Change.OWN),
        "roles": Behaviour(Change.REVISION),
        "clusterName": Behaviour(Change.REVISION),
        "failureDomain": Behaviour(Change.HOST, absent=Absent.EMPTY_TEXT),
        "nodeDrainTimeout": Behaviour(Change.IN_PLACE, timeout=True),
        "nodeDrainDeleteAfter": Behaviour(Change.IN_PLACE, timeout=True),
        "nodeDrainForceAfter": Behaviour(Change.IN_PLACE, timeout=True),
        "nodeVolumeDetachTimeout": Behaviour(Change.IN_PLACE, timeout=True),
        "nodeDeletionTimeout": Behaviour(Change.IN_PLACE, timeout=True),
        "readinessGates": Behaviour(Change.IN_PLACE),
        "minReadySeconds": Behaviour(Change.IN_PLACE),
    }
)
"""The fields of a Machine's spec, in the order of their declaration."""

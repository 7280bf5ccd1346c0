"""What a node group wants otherwise than the Cluster Autoscaler's flags say."""

from __future__ import annotations

from collections.abc import Mapping

from api.autoscaling import GroupOptions, node_group_options

_NONE = GroupOptions()


def own_options(annotations: Mapping[str, str]) -> GroupOptions | None:
    """By the group's annotations; None: it has none of its own.

    A faulty annotation counts as none, as with the Cluster Autoscaler's own provider.
    """
    found, _ = node_group_options(annotations)
    return None if found == _NONE else found

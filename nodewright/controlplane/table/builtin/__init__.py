"""The columns of the kinds that need no CustomResourceDefinition.

What they show, and in which words, follows kubernetes/pkg/printers/internalversion; a test compares them with tables
that a real kube-apiserver gave.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodewright.controlplane.table.builtin import access, cluster, network, nodes, pods, volumes, workloads
from nodewright.controlplane.table.builtin.basics import DEFAULT
from nodewright.controlplane.table.printer import Printer

__all__ = ["DEFAULT", "PRINTERS"]

PRINTERS: Mapping[tuple[str, str], Printer] = {
    **access.PRINTERS,
    **cluster.PRINTERS,
    **network.PRINTERS,
    **nodes.PRINTERS,
    **pods.PRINTERS,
    **volumes.PRINTERS,
    **workloads.PRINTERS,
}
"""By apiVersion and kind; a kind that is served as a subresource only has "" for its apiVersion."""

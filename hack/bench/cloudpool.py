"""What a scale-down through the cloudpool proxy costs: eight Nodes of thirty pods, whose pods stop at once."""

from __future__ import annotations

import asyncio
import logging

import structlog

from hack.bench.figures import Figure
from hack.cloudpool.scene import scale_down, scene

NODES, PODS = 8, 30
_ORIGINAL = (2 * NODES + 1) * (1 + 2 * 2 * NODES) + 2 * NODES + NODES * PODS + 4 * NODES
"""Calls of kubeaware-cloudpool-proxy for the same, by what it asks for each candidate: all Nodes, one by one, twice."""


def cloudpool() -> list[Figure]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return asyncio.run(_scale_down())


async def _scale_down() -> list[Figure]:
    async with scene() as stage:
        calls, seconds = await scale_down(stage, NODES, PODS)
    return [
        Figure("cloudpool_scaledown8_calls", calls, "calls", "lower", "the original, calculated", _ORIGINAL),
        Figure("cloudpool_scaledown8_seconds", round(seconds, 3), "s", "lower"),
    ]

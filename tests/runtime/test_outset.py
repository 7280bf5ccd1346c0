"""What a process says before its first round."""

from __future__ import annotations

import logging
from dataclasses import replace

import structlog
from structlog.testing import LogCapture

from controllers.kernel.refs import MACHINE, MACHINE_SET, Key, Ref
from nodewright.runtime.cache.cache import Cache
from nodewright.runtime.fleet import outset
from providers.base.registry import Registry
from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds
from tests.builders import machine, machine_set
from tests.runtime.town import Town


def test_a_configuration_without_a_provider_is_named_with_what_to_do() -> None:
    cache = Cache([MACHINE, MACHINE_SET])
    odd = machine("odd").build()
    odd["spec"]["providerConfig"] = {"value": {"apiVersion": "cloud.example/v1", "kind": "Box"}}
    malformed = {**machine("m").build(), "spec": [1]}
    cache.listed(MACHINE, [odd, machine("usual").build(), malformed], "1")
    cache.listed(MACHINE_SET, [machine_set("ms").build(), {**machine_set("odd").build(), "spec": {"template": 1}}], "1")
    (line,) = outset.missing_providers(cache, Registry.of(registration_for(Worlds())))
    assert line.startswith("no installed provider has Box of cloud.example/v1, which 1 object ask")
    assert "install its package" in line
    assert outset.lost_simulation(cache) == ""


async def test_hosts_that_only_an_earlier_process_knew_are_not_lost_in_silence(town: Town) -> None:
    log = LogCapture()
    structlog.configure(processors=[log], wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    await town.machine_set("ms", 2)
    async with town.controllers():
        await town.until(lambda: town.ready() == 2)
    assert not [entry for entry in log.entries if entry["event"] == "simulated hosts are not known"]
    worlds = Worlds()
    town.options = replace(
        town.options,
        registry=Registry.of(registration_for(worlds)),
        simulated_worlds=lambda: worlds.all,
        hosts_in_memory=True,
    )
    async with town.controllers():
        await town.client.merge_patch(Ref(MACHINE_SET, Key("default", "ms")), {"metadata": {"labels": {"a": "b"}}})
    said = [entry["why"] for entry in log.entries if entry["event"] == "simulated hosts are not known"]
    assert len(said) == 1
    assert said[0].startswith("2 Machines with simulated hosts of an earlier process")
    assert "--simulated-cloud" in said[0]

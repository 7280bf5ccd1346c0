"""Providers are found by entry point and loaded when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from providers.base.contract import ConfigKind, Provider, Registration
from providers.base.registry import Registry, ScopeKey
from providers.simulated.config import API_VERSION, KIND

SIMULATED = {"apiVersion": API_VERSION, "kind": KIND}


def registration(name: str, api_version: str, kind: str = "Config") -> Registration:
    def never(_scope: str, _config: Mapping[str, Any]) -> Provider:
        raise AssertionError("nobody asked for it")

    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    return Registration(name, (ConfigKind(api_version, kind, schema),), lambda _config: "only", never)


class Loads:
    """Loaders that tell which were used."""

    def __init__(self) -> None:
        self.used: list[str] = []

    def of(self, made: Registration) -> Callable[[], Registration]:
        def load() -> Registration:
            self.used.append(made.name)
            return made

        return load


def test_the_simulated_provider_is_installed() -> None:
    found = Registry.installed().find(API_VERSION, KIND)
    assert found is not None
    assert found.registration.name == "simulated"


def test_only_the_provider_that_a_config_names_is_loaded_and_only_once() -> None:
    loads = Loads()
    registry = Registry(
        {
            "azure": loads.of(registration("azure", "azure.example/v1")),
            "openstack": loads.of(registration("openstack", "openstack.nodewright.dev/v1")),
        }
    )
    assert loads.used == []
    for _ in range(3):
        assert registry.problems({"apiVersion": "openstack.nodewright.dev/v1", "kind": "Config"}) == ()
    assert loads.used == ["openstack"]


def test_a_provider_that_cannot_be_loaded_harms_nobody_else() -> None:
    def broken() -> Registration:
        raise ImportError("No module named 'openstack'")

    registry = Registry({"a-broken": broken, "good": Loads().of(registration("good", "good.example/v1"))})
    assert registry.find("good.example/v1", "Config") is not None
    (problem,) = registry.problems({"apiVersion": "other.example/v1", "kind": "Config"})
    assert "known: good.example/v1 Config" in problem.message
    assert "could not be loaded: a-broken (ImportError: No module named 'openstack')" in problem.message
    assert registry.broken == {"a-broken": "ImportError: No module named 'openstack'"}


@pytest.mark.parametrize(
    ("config", "path", "text"),
    [
        ({}, "apiVersion", "is required"),
        ({"apiVersion": 1, "kind": "x"}, "apiVersion", "is required"),
        ({"apiVersion": "no.example/v1", "kind": "x"}, "apiVersion", "no installed provider"),
        ({"apiVersion": API_VERSION, "kind": "Wrong"}, "kind", "no installed provider"),
        ({**SIMULATED, "cpus": "two"}, "cpus", "must be a whole number"),
    ],
)
def test_problems_name_the_field(config: dict[str, Any], path: str, text: str) -> None:
    first = Registry.installed().problems(config)[0]
    assert first.path == path
    assert text in first.message


def test_no_provider_at_all_is_said() -> None:
    (problem,) = Registry({}).problems(SIMULATED)
    assert problem.message.endswith("none is installed")


def test_a_scope_is_told_by_provider_and_its_own_word() -> None:
    registry = Registry.of(registration("good", "good.example/v1"))
    assert registry.scope({"apiVersion": "good.example/v1", "kind": "Config"}) == ScopeKey("good", "only")
    assert str(ScopeKey("good", "only")) == "good/only"
    with pytest.raises(LookupError, match="no installed provider"):
        registry.scope(SIMULATED)


def test_the_name_of_a_scope_fits_the_status_of_a_machine() -> None:
    """A Machine of a longer one could never say where its host is, and so was never deleted."""
    long = [ScopeKey("openstack", f"team/{'s' * 250}/{'c' * 250}/{'r' * 250}{end}", "team") for end in "ab"]
    assert [len(str(key)) for key in long] == [512, 512]
    assert str(long[0]) != str(long[1])

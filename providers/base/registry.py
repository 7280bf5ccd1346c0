"""Find the provider that a config belongs to.

A provider package declares an entry point of the group ``nodewright.providers`` that points at a ``Registration``. An
entry point is loaded when the first config asks for it, so a provider whose libraries are heavy costs a command nothing
until it is used, and one that can't be loaded harms nobody else. Controllers load all of them before they begin: the
first config must not make all others wait for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import entry_points
from typing import Any

from providers.base.config_schema import problems_of
from providers.base.contract import BootstrapFormat, ConfigKind, Problem, Registration
from providers.base.user_data import UserDataLimit

ENTRY_POINT_GROUP = "nodewright.providers"
LONGEST_SCOPE = 512


@dataclass(frozen=True, slots=True)
class Found:
    """The provider and the config type of it that a config names."""

    registration: Registration
    config_kind: ConfigKind


@dataclass(frozen=True, slots=True, order=True)
class ScopeKey:
    """One account or region of one provider: hosts in it are listed by one call.

    ``namespace``: the one whose Secrets or objects say what it is; "" for a scope of all namespaces.
    """

    provider: str
    scope: str
    namespace: str = ""

    def __str__(self) -> str:
        """At most ``LONGEST_SCOPE`` characters, as ``status.hostScope`` takes; the same for no two scopes."""
        text = f"{self.provider}/{self.scope}"
        if len(text) <= LONGEST_SCOPE:
            return text
        return f"{text[: LONGEST_SCOPE - 65]}…{sha256(text.encode()).hexdigest()}"

    def may_have_hosts_of(self, namespace: str) -> bool:
        """Whether what is listed in it says anything of Machines of ``namespace``: others' clouds prove nothing."""
        return self.namespace in {"", namespace}


class Registry:
    """The providers at hand, by name. Not thread-safe; meant for one event loop."""

    def __init__(self, loaders: Mapping[str, Callable[[], Registration]]) -> None:
        self._loaders = dict(loaders)
        self._loaded: dict[str, Registration] = {}
        self._broken: dict[str, str] = {}

    @classmethod
    def installed(cls) -> Registry:
        """All providers whose packages are installed."""
        return cls({point.name: point.load for point in entry_points(group=ENTRY_POINT_GROUP)})

    @classmethod
    def of(cls, *registrations: Registration) -> Registry:
        """Just these, for simulations and tests."""
        return cls({registration.name: _always(registration) for registration in registrations})

    @property
    def broken(self) -> Mapping[str, str]:
        """Name → reason of the providers that could not be loaded so far."""
        return dict(self._broken)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all installed providers, loaded or not, sorted."""
        return tuple(sorted(self._loaders))

    def named(self, name: str) -> Registration | None:
        """None: there is none of this name, or it is ``broken``. Loads no other."""
        return self._load(name) if name in self._loaders else None

    def load(self) -> None:
        """Load all of them now; ``broken`` has those that can't be."""
        self.registrations()

    def registrations(self) -> tuple[Registration, ...]:
        """Every provider that can be loaded, in the order of their names (loads them all)."""
        return tuple(self._each(sorted(self._loaders)))

    def find(self, api_version: str, kind: str) -> Found | None:
        """The provider of a config type; None if nobody has it."""
        for registration in self._each(self._likeliest_first(api_version)):
            for config_kind in registration.config_kinds:
                if (config_kind.api_version, config_kind.kind) == (api_version, kind):
                    return Found(registration, config_kind)
        return None

    def problems(self, config: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What is wrong with ``config`` as far as it shows without a call to the provider's API."""
        untyped = tuple(
            Problem(name, "is required: it names the provider's config type")
            for name in ("apiVersion", "kind")
            if not isinstance(config.get(name), str) or not config[name]
        )
        if untyped:
            return untyped
        found = self.find(config["apiVersion"], config["kind"])
        if found is None:
            return (self._unknown_kind(config["apiVersion"], config["kind"]),)
        return problems_of(config, found.config_kind.schema)

    def scope(self, config: Mapping[str, Any], namespace: str = "") -> ScopeKey:
        """The scope of a config that has no ``problems``, for Machines of ``namespace``.

        Raises LookupError if nobody has its type.
        """
        found = self.find(str(config.get("apiVersion", "")), str(config.get("kind", "")))
        if found is None:
            raise LookupError(self._unknown_kind(str(config.get("apiVersion")), str(config.get("kind"))).message)
        scope = found.registration.scope_of(config)
        registration = found.registration
        namespaced = registration.reads_bootstrap_data or bool(registration.secrets_of(config, namespace))
        if not namespaced:
            return ScopeKey(found.registration.name, scope)
        return ScopeKey(found.registration.name, f"{namespace}/{scope}", namespace)

    def in_place_refusal(self, config: Mapping[str, Any]) -> str | None:
        """Why hosts of ``config`` get no other version of Kubernetes in place, "" if they may; None: nobody can tell
        before the host is asked for, or the config has ``problems``.
        """
        found = self.find(str(config.get("apiVersion", "")), str(config.get("kind", "")))
        return None if found is None or self.problems(config) else found.registration.in_place_refusal(config)

    def bootstrapping(
        self, config: Mapping[str, Any]
    ) -> tuple[tuple[BootstrapFormat, ...], str, UserDataLimit | None, bool]:
        """The forms of bootstrap data that its provider hands to hosts of ``config``, why it gets none from here
        ("" if it does), how much its cloud takes, and whether it prepares hosts before they can join.
        """
        found = self.find(str(config.get("apiVersion", "")), str(config.get("kind", "")))
        if found is None:
            return (), "", None, False
        registration = found.registration
        if registration.bootstraps_itself:
            return (), f"provider {registration.name} lets its hosts join by itself", None, False
        if registration.brings_user_data(config):
            return (), "the provider's configuration brings user data of its own", None, False
        return registration.bootstrap_formats, "", registration.user_data_limit, registration.prepares_hosts

    def _unknown_kind(self, api_version: str, kind: str) -> Problem:
        known = [f"{k.api_version} {k.kind}" for r in self.registrations() for k in r.config_kinds]
        text = f"no installed provider has the config type {api_version} {kind}"
        text += f"; known: {', '.join(known)}" if known else "; none is installed"
        if self._broken:
            text += "; could not be loaded: " + ", ".join(f"{n} ({why})" for n, why in sorted(self._broken.items()))
        same_version = any(k.startswith(f"{api_version} ") for k in known)
        return Problem("kind" if same_version else "apiVersion", text)

    def _likeliest_first(self, api_version: str) -> list[str]:
        """``openstack.nodewright.dev/v1`` is looked for at the entry point ``openstack`` before any other is loaded."""
        label = api_version.split("/", 1)[0].split(".", 1)[0]
        return sorted(self._loaders, key=lambda name: (name != label, name not in self._loaded, name))

    def _each(self, names: Iterable[str]) -> Iterator[Registration]:
        for name in names:
            registration = self._load(name)
            if registration is not None:
                yield registration

    def _load(self, name: str) -> Registration | None:
        if name in self._broken:
            return None
        if name not in self._loaded:
            try:
                self._loaded[name] = self._loaders[name]()
            except Exception as error:  # a third party's module may fail in any way at import
                self._broken[name] = f"{type(error).__name__}: {error}"
                return None
        return self._loaded[name]


def _always(registration: Registration) -> Callable[[], Registration]:
    return lambda: registration

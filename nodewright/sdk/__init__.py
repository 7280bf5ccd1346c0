"""What a provider of a third party imports: the whole contract under one name that stays.

``SDK_VERSION`` names it. Within a version names are added, and nothing is taken away or changes its meaning. A new
version is served beside the old one for at least two minor releases (docs/providers.md).
"""

from __future__ import annotations

from typing import Final

from providers.base.capabilities import (
    LONGEST_CONSOLE,
    LONGEST_OUTPUT,
    Channel,
    Quota,
    ReachesPorts,
    RebindsHosts,
    RunsScripts,
    ShowsConsole,
    ShowsQuotas,
)
from providers.base.contract import (
    BOOTSTRAP_DATA,
    Address,
    BootstrapFormat,
    BootstrapRef,
    ConfigKind,
    Host,
    HostIdentity,
    HostRequest,
    HostState,
    InProgress,
    KubeletUpgrade,
    NeedsDrain,
    NeedsReplacement,
    NodeRegistration,
    Objects,
    Problem,
    Provider,
    Registration,
    SecretRef,
    Secrets,
    Shape,
    Taint,
    UpdateAnswer,
    Updated,
    Versions,
)
from providers.base.errors import ErrorClass, ProviderError
from providers.base.extras import install_command
from providers.base.user_data import CLOUDS, Fitted, TooLarge, UserDataLimit, fit

SDK_VERSION: Final = "v1alpha1"

__all__ = [
    "BOOTSTRAP_DATA",
    "CLOUDS",
    "LONGEST_CONSOLE",
    "LONGEST_OUTPUT",
    "SDK_VERSION",
    "Address",
    "BootstrapFormat",
    "BootstrapRef",
    "Channel",
    "ConfigKind",
    "ErrorClass",
    "Fitted",
    "Host",
    "HostIdentity",
    "HostRequest",
    "HostState",
    "InProgress",
    "KubeletUpgrade",
    "NeedsDrain",
    "NeedsReplacement",
    "NodeRegistration",
    "Objects",
    "Problem",
    "Provider",
    "ProviderError",
    "Quota",
    "ReachesPorts",
    "RebindsHosts",
    "Registration",
    "RunsScripts",
    "SecretRef",
    "Secrets",
    "Shape",
    "ShowsConsole",
    "ShowsQuotas",
    "Taint",
    "TooLarge",
    "UpdateAnswer",
    "Updated",
    "UserDataLimit",
    "Versions",
    "fit",
    "install_command",
]

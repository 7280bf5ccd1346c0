"""Options about ProvisioningRequests, named as the Cluster Autoscaler names them where it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodewright.cli.autoscaler_values import time_of
from nodewright.cli.autoscaling import Flags

if TYPE_CHECKING:
    from controllers.provisioningrequest.options import ProvisioningOptions


def provisioning_of(flags: Flags) -> ProvisioningOptions:
    """Raises CliError (usage) naming the option."""
    from controllers.provisioningrequest.options import Limits, ProvisioningOptions  # noqa: PLC0415

    limits = Limits(
        time_of("--provisioning-request-booking-time", flags.provisioning_request_booking_time),
        time_of("--provisioning-request-initial-backoff-time", flags.provisioning_request_initial_backoff_time),
        time_of("--provisioning-request-max-backoff-time", flags.provisioning_request_max_backoff_time),
    )
    return ProvisioningOptions(
        limits,
        time_of("--provisioning-request-max-age", flags.provisioning_request_max_age),
        instance=flags.check_capacity_processor_instance,
    )

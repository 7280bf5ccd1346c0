"""Options about ProvisioningRequests, named as the Cluster Autoscaler names them where it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodewright.cli.autoscaling import Flags
from nodewright.cli.options import duration_of

if TYPE_CHECKING:
    from controllers.provisioningrequest.options import ProvisioningOptions


def provisioning_of(flags: Flags) -> ProvisioningOptions:
    """Raises CliError (usage) naming the option."""
    from controllers.provisioningrequest.options import Limits, ProvisioningOptions  # noqa: PLC0415

    limits = Limits(
        duration_of("--provisioning-request-booking-time", flags.provisioning_request_booking_time),
        duration_of("--provisioning-request-initial-backoff-time", flags.provisioning_request_initial_backoff_time),
        duration_of("--provisioning-request-max-backoff-time", flags.provisioning_request_max_backoff_time),
    )
    return ProvisioningOptions(
        limits,
        duration_of("--provisioning-request-max-age", flags.provisioning_request_max_age),
        instance=flags.check_capacity_processor_instance,
    )

"""One simulated cloud for several management clusters, as a real one would be."""

from __future__ import annotations

from pathlib import Path

from nodewright.cli.exits import CliError


def share_hosts_in(folder: Path) -> None:
    """Raises CliError if another process has it for itself, or it is damaged."""
    from providers.simulated import WORLDS  # noqa: PLC0415

    try:
        WORLDS.keep_in(folder, shared=True)
    except RuntimeError as error:
        raise CliError(str(error), "Start each of them with --simulated-cloud of this folder") from error
    except ValueError as error:
        raise CliError(str(error), "Remove the damaged file, or choose another --simulated-cloud") from error

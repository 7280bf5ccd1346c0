"""``python -m hack.hosts.starter CGROUP COMMAND…``: enter the cgroups of a host, then become the command."""

from __future__ import annotations

import os
import sys

from hack.hosts import cgroups


def main() -> None:
    cgroups.enter(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()

"""``python -m hack.hosts.starter CGROUP COMMAND…``: start the command in the cgroups of a host, and leave it alone.

It ends at once; the command is nobody's child and outlives whoever asked for it.
"""

from __future__ import annotations

import os
import sys

from hack.hosts import cgroups


def main() -> None:
    cgroups.enter(sys.argv[1])
    if os.fork() == 0:
        os.setsid()
        os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()

"""``python -m hack.openstack [FOLDER]``: the cloud until Ctrl-C; the folder is made, and keeps the logs.

``python -m hack.openstack --install`` installs what is missing, and no more.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path

from hack.openstack import install
from hack.openstack.cloud import RealCloud
from hack.openstack.install import PartMissing


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore the first
        signal.signal(number, signal.default_int_handler)
    arguments = sys.argv[1:]
    try:
        if arguments == ["--install"]:
            print(install.ensure(_say))
            return 0
        with RealCloud(Path(arguments[0]) if arguments else None, _say) as cloud:
            print(f"export OS_CLIENT_CONFIG_FILE={cloud.clouds_yaml} OS_CLOUD=demo", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except (PartMissing, RuntimeError) as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())

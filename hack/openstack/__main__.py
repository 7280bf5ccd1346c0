"""``python -m hack.openstack [FOLDER]``: the cloud until Ctrl-C; the folder is made, and keeps the logs."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

from hack.openstack.cloud import RealCloud
from hack.openstack.install import PartMissing


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        with RealCloud(folder, lambda text: print(text, file=sys.stderr, flush=True)) as cloud:
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

"""``python -m hack.site``: the documentation of this version into ``build/site/VERSION``; see docs/releasing.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hack.release.parts import ROOT, ReleaseError
from hack.site import building
from nodewright import __version__


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.site", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build/site", help="folder with a folder for each version")
    parser.add_argument("--source", default="", help="address at which the repository's files are shown")
    options = parser.parse_args(arguments)
    try:
        made = building.build(options.out, __version__, options.source)
    except ReleaseError as error:
        print(f"hack.site: {error}", file=sys.stderr)
        return 1
    print(f"{made.pages} pages are in {made.folder}; open {made.folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

from __future__ import annotations

from nodewright.cli.main import main

main()

"""``python -m nodewright``."""

from __future__ import annotations

from nodewright.cli.main import main

if __name__ == "__main__":
    main()

"""The CEL interpreter without its command line tool.

`cel/__init__.py` (common-expression-language 0.10) imports `cel.cli`, and with it prompt_toolkit, pygments, typer and
rich: 0.8 of the 0.85 seconds that `import cel` takes, for nothing that a server uses.
"""

from __future__ import annotations

import sys
from types import ModuleType

if "cel" in sys.modules or "cel.cli" in sys.modules:
    import cel
else:
    sys.modules["cel.cli"] = ModuleType("cel.cli")
    try:
        import cel
    finally:
        # A later import of the tool gets the real one.
        del sys.modules["cel.cli"]
    if "cli" in vars(cel):
        del cel.cli

from cel.stdlib import STDLIB_FUNCTIONS

__all__ = ["STDLIB_FUNCTIONS", "cel"]

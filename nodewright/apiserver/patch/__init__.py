"""The four ways to PATCH an object, but for server-side apply, which is `nodewright.apiserver.managedfields`.

Every function takes an object and a patch, changes neither, and returns a new object that shares what did not change.
"""

from __future__ import annotations

from nodewright.apiserver.patch.merge import apply_merge
from nodewright.apiserver.patch.operations import apply_json
from nodewright.apiserver.patch.strategic import apply_strategic

__all__ = ["apply_json", "apply_merge", "apply_strategic"]

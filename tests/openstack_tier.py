"""Where the tests on a real OpenStack get it from, and what they say where it is missing."""

from __future__ import annotations

import pytest

REAL = [pytest.mark.openstack, pytest.mark.slow]

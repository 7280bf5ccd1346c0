"""The stock kubectl, which renders and applies what lies in deploy/."""

from __future__ import annotations

from pathlib import Path

import pytest

from hack import kubectl as stock


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    found = stock.find()
    if found is None:
        pytest.skip(stock.HOW_TO_GET_IT)
    return found

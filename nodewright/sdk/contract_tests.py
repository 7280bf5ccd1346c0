"""The contract as tests, for a provider's own suite. Needs pytest and pytest-asyncio."""

from __future__ import annotations

from providers.base.contract_tests import ProviderContract

__all__ = ["ProviderContract"]

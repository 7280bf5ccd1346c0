"""Hosts on OpenStack, through openstacksdk (the extra ``openstack``); the entry point names ``registration``."""

from __future__ import annotations

from providers.openstack.provider import registration_with

registration = registration_with()

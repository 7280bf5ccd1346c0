"""Doors for other programs: each speaks somebody's protocol and decides nothing about machines."""

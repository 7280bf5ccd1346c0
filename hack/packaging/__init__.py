"""How the wheel is built (ADR 0039)."""

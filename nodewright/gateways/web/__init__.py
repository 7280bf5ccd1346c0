"""The web view: a fleet in a browser, live, read-only, with the rights of the person who looks (ADR 0054)."""

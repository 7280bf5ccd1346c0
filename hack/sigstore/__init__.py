"""A private Sigstore on this machine: the real Fulcio, CT log, Rekor and timestamp authority (ADR 0068)."""

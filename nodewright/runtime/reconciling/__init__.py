"""The one generic shell around every reconciler."""

"""OpenAPI v3 of what the control plane serves."""

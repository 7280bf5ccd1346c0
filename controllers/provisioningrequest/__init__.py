"""ProvisioningRequests: room for a number of pods, all of it or nothing."""

"""What needs a real OpenStack: `make e2e-openstack`."""

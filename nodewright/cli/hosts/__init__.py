"""``nodewright hosts``: people and the hosts of SSHHostPools."""

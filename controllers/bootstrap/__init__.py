"""What a host must do to join a cluster as a Node: typed steps, independent of how they reach the host.

``plan.join_steps`` decides the steps from a ``Join``; ``cloud_config`` and ``shell`` render the same steps for
cloud-init and for a POSIX shell; a provider that works on the host itself performs them one by one. All of it is pure:
the same input gives the same bytes.
"""

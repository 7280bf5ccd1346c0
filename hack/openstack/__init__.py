"""A real OpenStack on this machine: Keystone, Glance, Placement, Neutron, Nova and Cinder.

    make openstack                     # or: python -m hack.openstack [FOLDER]

installs what is missing (a minute, once), brings the cloud up on loopback (half a minute), prints where its clouds.yaml
is, and takes it down on Ctrl-C. No guest boots, no packet flows, volumes are records; all else is real: APIs, quotas,
scheduling, states, the database.
"""

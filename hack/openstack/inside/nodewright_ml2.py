"""A Neutron mechanism driver that binds every port on every host: there is no network behind the fake servers.

Trunks come with it, for Neutron has none without a driver that knows them.
"""

from neutron.services.trunk.drivers import base
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.trunk import constants


class Driver(api.MechanismDriver):
    def initialize(self):
        self.trunks = Trunks(
            "nodewright", (portbindings.VIF_TYPE_OVS,), (constants.SEGMENTATION_TYPE_VLAN,), can_trunk_bound_port=True
        )

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID], portbindings.VIF_TYPE_OVS, {portbindings.CAP_PORT_FILTER: True}, status="ACTIVE"
            )
            return

    def filter_hosts_with_segment_access(self, context, segments, candidate_hosts, agent_getter):
        return set(candidate_hosts)


class Trunks(base.DriverBase):
    @property
    def is_loaded(self):
        return True

"""A Neutron mechanism driver that binds every port on every host: there is no network behind the fake servers."""

from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class Driver(api.MechanismDriver):
    def initialize(self):
        pass

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID], portbindings.VIF_TYPE_OVS, {portbindings.CAP_PORT_FILTER: True}, status="ACTIVE"
            )
            return

    def filter_hosts_with_segment_access(self, context, segments, candidate_hosts, agent_getter):
        return set(candidate_hosts)

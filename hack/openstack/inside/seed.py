"""Users, endpoints, and what a project needs to make servers: ``seed.py users|project SITE``.

Runs in the cloud's own environment, before (``users``) and after (``project``) the services other than Keystone.
"""

import json
import sys

import openstack

TYPES = {
    "placement": "placement",
    "glance": "image",
    "neutron": "network",
    "nova": "compute",
    "cinder": "volumev3",  # as Nova looks for it
}
FLAVORS = (("m1.tiny", 1, 512, 1), ("m1.small", 2, 2048, 10), ("m1.medium", 4, 4096, 20), ("m1.huge", 9, 900_000, 10))
"""name, vCPUs, MiB, GiB of disk; no compute service has room for the last one."""
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g nobody"


def users(site: dict) -> None:
    identity = openstack.connect(cloud="admin").identity
    services = identity.create_project(name="service", domain_id="default")
    roles = {name: identity.find_role(name) for name in ("admin", "member", "service")}
    for name, kind in TYPES.items():
        user = identity.create_user(
            name=name, password=site["password"], domain_id="default", default_project_id=services.id
        )
        for role in ("admin", "service"):
            identity.assign_project_role_to_user(services, user, roles[role])
        service = identity.create_service(name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            identity.create_endpoint(
                service_id=service.id, interface=interface, url=site["urls"][name], region_id=site["region"]
            )
    keystone = next(service for service in identity.services() if service.type == "identity")
    for interface in ("internal", "admin"):  # Placement and Nova look for these; the bootstrap made the public one only
        identity.create_endpoint(
            service_id=keystone.id, interface=interface, url=site["urls"]["keystone"], region_id=site["region"]
        )
    demo = identity.create_project(name="demo", domain_id="default")
    user = identity.create_user(name="demo", password=site["password"], domain_id="default", default_project_id=demo.id)
    identity.assign_project_role_to_user(demo, user, roles["member"])


def project(site: dict) -> None:
    admin, demo = openstack.connect(cloud="admin"), openstack.connect(cloud="demo")
    for name, cores, memory, disk in FLAVORS:
        admin.compute.create_flavor(name=name, vcpus=cores, ram=memory, disk=disk)
    gpu = admin.compute.create_flavor(name="g1.small", vcpus=2, ram=4096, disk=10)
    admin.compute.create_flavor_extra_specs(gpu, {"pci_passthrough:alias": "nvidia-a100:2", "hw:mem_page_size": "1GB"})
    for name in ("debian-12", "debian-13"):
        admin.image.create_image(
            name, data=b"x" * 1024, container_format="bare", disk_format="raw", visibility="public", wait=True
        )
    for zone, hosts in site["zones"].items():
        aggregate = admin.compute.create_aggregate(name=zone, availability_zone=zone)
        for host in hosts:
            admin.compute.add_host_to_aggregate(aggregate, host)
    public = admin.network.create_network(
        name="public", is_router_external=True, provider_network_type="flat", provider_physical_network="public"
    )
    admin.network.create_subnet(
        network_id=public.id, name="public", cidr="203.0.113.0/24", ip_version=4, is_dhcp_enabled=False
    )
    nodes = demo.network.create_network(name="nodes")
    subnet = demo.network.create_subnet(network_id=nodes.id, name="nodes", cidr="10.9.0.0/22", ip_version=4)
    storage = demo.network.create_network(name="storage")
    demo.network.create_subnet(network_id=storage.id, name="storage", cidr="10.10.0.0/22", ip_version=4)
    router = demo.network.create_router(name="nodes", external_gateway_info={"network_id": public.id})
    demo.network.add_interface_to_router(router, subnet_id=subnet.id)
    group = demo.network.create_security_group(name="nodes")
    demo.network.create_security_group_rule(
        security_group_id=group.id, direction="ingress", protocol="tcp", port_range_min=22, port_range_max=22
    )
    demo.compute.create_server_group(name="spread", policy="soft-anti-affinity")
    demo.compute.create_keypair(name="nodes", public_key=PUBLIC_KEY)


if __name__ == "__main__":
    globals()[sys.argv[1]](json.loads(sys.argv[2]))

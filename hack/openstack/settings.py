"""The configuration of the cloud's services, as values. Each line that is not obvious says why it is there."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

HERE = "127.0.0.1"
REGION = "RegionOne"
COMPUTES = ("cn1", "cn2", "cn3")
ZONES = {"az1": ("cn1",), "az2": ("cn2", "cn3")}
CORES, INSTANCES = 80, 60
"""Quota of the project ``demo``."""
SERVICES = ("keystone", "glance", "neutron", "placement", "nova", "cinder")
METADATA = "metadata"
"""Nova's metadata service, which guests ask: a port, and no endpoint in the catalogue."""
DATABASES = ("keystone", "glance", "neutron", "placement", "nova", "nova_api", "nova_cell0", "cinder")

Ini = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Site:
    """Where everything is: ``folder`` for files, ``venv`` for programs, ports by service (``mariadb`` too)."""

    folder: Path
    venv: Path
    ports: Mapping[str, int]
    password: str

    def url(self, service: str) -> str:
        path = {"keystone": "/v3", "nova": "/v2.1", "cinder": "/v3"}.get(service, "")
        return f"http://{HERE}:{self.ports[service]}{path}"

    def database(self, name: str) -> str:
        return f"mysql+pymysql://root@{HERE}:{self.ports['mariadb']}/{name}?charset=utf8"


def write_all(site: Site) -> None:
    """Every file that the services read, clouds.yaml with the clouds ``admin`` and ``demo``, and metadata.yaml, which
    tells how guests ask Nova.
    """
    for folder in ("fernet", "credentials", "images", "images/staging", "images/tasks", "lock", "state"):
        (site.folder / folder).mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copy(site.venv / "etc" / "nova" / "api-paste.ini", site.folder)  # Nova looks beside its configuration
    files = {
        "keystone.conf": _keystone(site),
        "glance-api.conf": _glance(site),
        "neutron.conf": _neutron(site),
        "placement.conf": _placement(site),
        "nova.conf": _nova(site),
        "cinder.conf": _cinder(site),
    }
    for name, ini in files.items():
        _private(site.folder / name, _ini_text(ini))
    users = {name: {"region_name": REGION, "auth": _login(site, name)} for name in ("admin", "demo")}
    _private(site.folder / "clouds.yaml", yaml.safe_dump({"clouds": users}))
    guests = {"url": f"http://{HERE}:{site.ports[METADATA]}", "secret": site.password}
    _private(site.folder / "metadata.yaml", yaml.safe_dump(guests))


def _login(site: Site, name: str) -> dict[str, str]:
    return {
        "auth_url": site.url("keystone"),
        "username": name,
        "password": site.password,
        "project_name": name,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }


def _keystone(site: Site) -> Ini:
    return {
        "DEFAULT": {
            "log_file": site.folder / "keystone-service.log",
            "public_endpoint": f"http://{HERE}:{site.ports['keystone']}",
        },
        "database": _pool(site, "keystone"),
        "fernet_tokens": {"key_repository": site.folder / "fernet"},
        "fernet_receipts": {"key_repository": site.folder / "fernet"},
        "credential": {"key_repository": site.folder / "credentials"},
        "identity": {"password_hash_rounds": 4},  # a test's password needs no costly digest
        "token": {"provider": "fernet"},
    }


def _glance(site: Site) -> Ini:
    return {
        "DEFAULT": {
            "log_file": site.folder / "glance-service.log",
            "enabled_backends": "fs:file",
            "enabled_import_methods": "[]",
            "worker_self_reference_url": site.url("glance"),
        },
        "database": _pool(site, "glance"),
        "glance_store": {"default_backend": "fs"},
        "fs": {"filesystem_store_datadir": site.folder / "images"},
        "os_glance_staging_store": {"filesystem_store_datadir": site.folder / "images" / "staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": site.folder / "images" / "tasks"},
        "paste_deploy": {"flavor": "keystone", "config_file": site.venv / "etc" / "glance" / "glance-api-paste.ini"},
        "keystone_authtoken": _as_service(site, "glance"),
    }


def _neutron(site: Site) -> Ini:
    return {
        "DEFAULT": {
            "log_file": site.folder / "neutron-service.log",
            "core_plugin": "ml2",
            "service_plugins": "router,trunk",
            "transport_url": "fake:/",
            "api_paste_config": site.venv / "etc" / "neutron" / "api-paste.ini",
            "dhcp_agent_notification": False,
            "notify_nova_on_port_status_changes": False,
            "notify_nova_on_port_data_changes": False,
            "state_path": site.folder / "state",
        },
        "database": _pool(site, "neutron"),
        "oslo_concurrency": {"lock_path": site.folder / "lock"},
        "keystone_authtoken": {**_as_service(site, "neutron"), "service_token_roles_required": True},
        "ml2": {
            "type_drivers": "local,flat",
            "tenant_network_types": "local",
            "mechanism_drivers": "nodewright",  # some driver has to bind ports; see inside/nodewright_ml2.py
            "extension_drivers": "port_security",
        },
        "ml2_type_flat": {"flat_networks": "public"},
        "quotas": {"quota_port": -1, "quota_floatingip": -1, "quota_security_group": -1},
    }


def _placement(site: Site) -> Ini:
    return {
        "DEFAULT": {"log_file": site.folder / "placement-service.log"},
        "api": {"auth_strategy": "keystone"},
        "placement_database": {**_pool(site, "placement"), "sync_on_startup": True},
        "keystone_authtoken": _as_service(site, "placement"),
    }


def _nova(site: Site) -> Ini:
    us = _as_service(site, "nova")
    return {
        "DEFAULT": {
            "log_file": site.folder / "nova-service.log",
            "transport_url": "fake:/",  # inside of one process: see inside/nova_services.py
            "state_path": site.folder / "state",
            "compute_driver": "fake.MediumFakeDriver",  # 10 vCPU each, so that capacity can really be used up
            "host": COMPUTES[0],
            "my_ip": HERE,
            "initial_ram_allocation_ratio": 2.0,  # 30 of the smallest servers for each
            "report_interval": 5,
            "service_down_time": 60,
            "update_resources_interval": 10,
            "periodic_fuzzy_delay": 1,
            "resize_confirm_window": 0,
        },
        "api": {"auth_strategy": "keystone"},
        "api_database": _pool(site, "nova_api"),
        "database": _pool(site, "nova"),
        "oslo_concurrency": {"lock_path": site.folder / "lock"},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 5},
        "conductor": {"workers": 1},
        "filter_scheduler": {
            "enabled_filters": "ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,"
            "ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter"
        },
        "quota": {"cores": CORES, "instances": INSTANCES, "ram": -1},
        "service_user": {"send_service_user_token": True, **us},  # Neutron lets only services delete ports of servers
        "keystone_authtoken": us,
        "placement": us,
        "neutron": {
            **_as_service(site, "neutron"),
            "service_metadata_proxy": True,  # a signed id identifies a guest, as Neutron's agent does it
            "metadata_proxy_shared_secret": site.password,
        },
        "glance": {"api_servers": site.url("glance"), **_as_service(site, "glance")},
        "cinder": us,
    }


def _cinder(site: Site) -> Ini:
    us = _as_service(site, "cinder")
    return {
        "DEFAULT": {
            "log_file": site.folder / "cinder-service.log",
            "transport_url": "fake:/",  # inside of one process: see inside/cinder_services.py
            "state_path": site.folder / "state",
            "api_paste_config": site.venv / "etc" / "cinder" / "api-paste.ini",
            "auth_strategy": "keystone",
            "enabled_backends": "nothing",
            "glance_api_servers": site.url("glance"),
            "report_interval": 5,
            "service_down_time": 60,
            "periodic_fuzzy_delay": 1,
            "quota_volumes": -1,
            "quota_gigabytes": -1,
        },
        "nothing": {"volume_driver": "nodewright_volumes.Driver", "volume_backend_name": "nothing"},
        "database": _pool(site, "cinder"),
        "coordination": {"backend_url": f"file://{site.folder / 'state' / 'coordination'}"},
        "oslo_concurrency": {"lock_path": site.folder / "lock"},
        "service_user": {"send_service_user_token": True, **us},
        "keystone_authtoken": {**us, "service_token_roles_required": True},
        "nova": us,
    }


def _as_service(site: Site, name: str) -> dict[str, object]:
    return {
        "www_authenticate_uri": f"http://{HERE}:{site.ports['keystone']}",
        "auth_url": site.url("keystone"),
        "auth_type": "password",
        "project_domain_name": "Default",
        "user_domain_name": "Default",
        "project_name": "service",
        "region_name": REGION,
        "username": name,
        "password": site.password,
    }


def _pool(site: Site, name: str) -> dict[str, object]:
    return {"connection": site.database(name), "max_overflow": 50}


def _ini_text(ini: Ini) -> str:
    lines: list[str] = []
    for section, values in ini.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in values.items()), ""]
    return "\n".join(lines)


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)

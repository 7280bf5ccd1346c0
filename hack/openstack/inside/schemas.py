"""Make the tables of one service: ``schemas.py SERVICE SITE`` with the site as JSON. Runs in the cloud's environment.

Each in one process: the programs of the services would import everything anew for each of their steps.
"""

import json
import sys


def databases(site: dict) -> None:
    import pymysql  # noqa: PLC0415

    connection = pymysql.connect(host="127.0.0.1", port=site["ports"]["mariadb"], user="root")
    with connection.cursor() as cursor:
        for name in site["databases"]:
            cursor.execute(f"create database if not exists {name} character set utf8mb3")


def keystone(site: dict) -> None:
    import keystone.conf  # noqa: PLC0415
    from keystone.cmd import bootstrap  # noqa: PLC0415
    from keystone.common import fernet_utils, sql  # noqa: PLC0415
    from keystone.common.sql import upgrades  # noqa: PLC0415
    from keystone.server import backends  # noqa: F401, PLC0415

    config = f"{site['folder']}/keystone.conf"
    keystone.conf.configure()
    sql.initialize()
    conf = keystone.conf.CONF
    conf(["--config-file", config], project="keystone", default_config_files=[config])
    upgrades.offline_sync_database_to_version(None)
    for keys, name in (
        (conf.fernet_tokens.key_repository, "fernet_tokens"),
        (conf.credential.key_repository, "credential"),
    ):
        repository = fernet_utils.FernetUtils(keys, 3, name)
        repository.create_key_directory()
        repository.initialize_key_repository()
    first = bootstrap.Bootstrapper()
    first.admin_username = first.project_name = first.admin_role_name = "admin"
    first.admin_password = site["password"]
    first.service_name = "keystone"
    first.public_url = site["urls"]["keystone"]
    first.region_id = site["region"]
    first.immutable_roles = False
    first.bootstrap()


def nova(site: dict) -> None:
    from nova import config, objects  # noqa: PLC0415
    from nova.cmd import manage  # noqa: PLC0415
    from nova.db import migration  # noqa: PLC0415

    config.parse_args(["nova-manage", "--config-file", f"{site['folder']}/nova.conf"])
    objects.register_all()
    migration.db_sync(database="api")
    cells = manage.CellV2Commands()
    cells.map_cell0(site["connections"]["nova_cell0"])
    manage.DbCommands().sync(None)
    cells.create_cell("cell1", site["connections"]["nova"], "fake:/")


def neutron(site: dict) -> None:
    import sqlalchemy  # noqa: PLC0415
    from neutron.db.migration.models import head  # noqa: PLC0415

    head.get_metadata().create_all(sqlalchemy.create_engine(site["connections"]["neutron"]))


def glance(site: dict) -> None:
    from glance.cmd import manage  # noqa: PLC0415

    sys.argv = ["glance-manage", "--config-file", f"{site['folder']}/glance-api.conf", "db_sync"]
    manage.main()


def cinder(site: dict) -> None:
    from cinder import objects  # noqa: PLC0415
    from cinder.common import config  # noqa: F401, PLC0415
    from cinder.db import migration  # noqa: PLC0415
    from oslo_config import cfg  # noqa: PLC0415

    objects.register_all()
    cfg.CONF(["--config-file", f"{site['folder']}/cinder.conf"], project="cinder")
    migration.db_sync()


if __name__ == "__main__":
    globals()[sys.argv[1]](json.loads(sys.argv[2]))

"""Start and stop the cloud: ``with RealCloud(folder) as cloud: cloud.clouds_yaml``."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.children import Children, free_ports
from hack.openstack import install, settings
from hack.openstack.install import Say
from hack.openstack.settings import Site

INSIDE = Path(__file__).parent / "inside"
SETUP_SECONDS = 300
START_SECONDS = 180
THREADS = {"keystone": 8, "glance": 4, "neutron": 8, "placement": 6}
DURABLE_ENOUGH = (
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-flush-method=nosync",
    "--skip-log-bin",
    "--performance-schema=off",
    "--skip-networking=0",
    "--skip-name-resolve",
    "--max-connections=400",
)
"""Nothing outlives the cloud, so its database need not."""
_QUICKEST = (Path("/dev/shm"), Path(tempfile.gettempdir()))


class RealCloud:
    """The services as child processes, all of them and their data gone afterwards.

    Raises ``install.PartMissing`` if a part can't be had, RuntimeError if one fails to start.
    """

    def __init__(self, folder: Path | None = None, say: Say = lambda _text: None, nice: int = 0) -> None:
        self._given = folder
        self._say = say
        self._nice = nice
        self._stack = ExitStack()
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        try:
            self._bring_up()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    @property
    def clouds_yaml(self) -> Path:
        """Logins of ``demo`` (a project with a quota) and ``admin``."""
        return self.site.folder / "clouds.yaml"

    def _bring_up(self) -> None:
        venv = install.ensure(self._progress)
        folder = self._folder()
        names = ("mariadb", settings.METADATA, *settings.SERVICES)
        self.site = Site(folder, venv, dict(zip(names, free_ports(len(names)), strict=True)), secrets.token_hex(12))
        settings.write_all(self.site)
        self._children = self._stack.enter_context(Children(folder, self._nice))
        self._database()
        self._progress("making the tables")
        self._all_of("schemas.py", ("keystone", "nova", "neutron", "glance", "cinder"))
        self._serve("keystone")
        self._all_of("seed.py", ("users",))
        for service in ("glance", "neutron", "placement"):
            self._serve(service, wait=False)
        self._nova()
        self._cinder()
        for service in ("glance", "neutron", "placement", "nova", "cinder"):
            self._until_up(service)
        self._all_of("seed.py", ("project",))
        self._progress("ready")

    def _folder(self) -> Path:
        if self._given is not None:
            self._given.mkdir(parents=True, mode=0o700)
            return self._given.absolute()
        where = next(path for path in _QUICKEST if path.is_dir() and os.access(path, os.W_OK))
        folder = Path(tempfile.mkdtemp(prefix="nodewright-openstack-", dir=where))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _database(self) -> None:
        self._progress("starting MariaDB")
        data, port = self.site.folder / "mariadb", self.site.ports["mariadb"]
        user = ["--user=root"] if os.geteuid() == 0 else []
        common = ["--no-defaults", f"--datadir={data}", *user]
        installer = [str(install.which("mariadb-install-db")), *common, "--auth-root-authentication-method=normal"]
        self._children.start("mariadb-install-db", [*installer, "--skip-test-db"])
        self._children.finish("mariadb-install-db", SETUP_SECONDS)
        listen = [f"--port={port}", f"--bind-address={settings.HERE}", f"--socket={self.site.folder / 'mariadb.sock'}"]
        pid = f"--pid-file={self.site.folder / 'mariadb.pid'}"
        self._children.start("mariadb", [str(install.which("mariadbd")), *common, *listen, pid, *DURABLE_ENOUGH])
        self._until_database()

    def _until_database(self) -> None:
        """Its tables are made by whoever first gets through."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            self._children.check("mariadb")
            try:
                self._all_of("schemas.py", ("databases",))
                return
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise

    def _serve(self, service: str, wait: bool = True) -> None:
        folder, upper = str(self.site.folder), service.upper()
        where = {f"OS_{upper}_CONFIG_DIR": folder, f"OS_{upper}_CONFIG_FILES": f"{service}.conf"}
        if service == "glance":  # it knows its file by name
            del where["OS_GLANCE_CONFIG_FILES"]
        command = [INSIDE / "serve.py", f"{service}.wsgi.api", self.site.ports[service], THREADS[service]]
        self._start(service, command, where)
        if wait:
            self._until_up(service)

    def _nova(self) -> None:
        names = ",".join(settings.COMPUTES)
        ports = (self.site.ports["nova"], self.site.ports[settings.METADATA])
        self._start("nova", [INSIDE / "nova_services.py", self.site.folder / "nova.conf", *ports, names], {})

    def _cinder(self) -> None:
        self._start(
            "cinder", [INSIDE / "cinder_services.py", self.site.folder / "cinder.conf", self.site.ports["cinder"]], {}
        )

    def _until_up(self, service: str) -> None:
        self._children.until_it_answers(service, f"http://{settings.HERE}:{self.site.ports[service]}/", START_SECONDS)
        self._progress(f"{service} is up")

    def _all_of(self, script: str, tasks: Sequence[str]) -> None:
        """Run the tasks of a script beside each other, and wait for them."""
        for task in tasks:
            self._start(f"{script.removesuffix('.py')}-{task}", [INSIDE / script, task, json.dumps(self._told())], {})
        for task in tasks:
            self._children.finish(f"{script.removesuffix('.py')}-{task}", SETUP_SECONDS)

    def _start(self, name: str, command: Sequence[object], variables: dict[str, str]) -> None:
        environment = {
            **os.environ,
            **variables,
            "PYTHONPATH": str(INSIDE),
            "PYTHONWARNINGS": "ignore",
            "OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml),
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # without compiled files each start takes three times as long
        python = str(self.site.venv / "bin" / "python")
        self._children.start(name, [python, *map(str, command)], environment)

    def _told(self) -> dict[str, object]:
        site = self.site
        return {
            "folder": str(site.folder),
            "password": site.password,
            "region": settings.REGION,
            "ports": site.ports,
            "zones": settings.ZONES,
            "databases": settings.DATABASES,
            "urls": {service: site.url(service) for service in settings.SERVICES},
            "connections": {name: site.database(name) for name in settings.DATABASES},
        }

    def _progress(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._started:6.1f} s  {text}")

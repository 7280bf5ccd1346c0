"""All of Cinder in one process: API, scheduler and one volume service. Runs in the cloud's own environment.

    cinder_services.py CONFIG PORT

They talk over oslo.messaging's in-process transport: no broker is needed.
"""

import sys

CONFIG, PORT = sys.argv[1], int(sys.argv[2])
sys.argv = ["cinder", "--config-file", CONFIG]  # Cinder reads the command line when the API is made

from cinder import monkey_patch  # noqa: E402

monkey_patch.patch(backend="threading")

import waitress  # noqa: E402
from cinder.common import constants  # noqa: E402
from cinder.wsgi import wsgi  # noqa: E402

application = wsgi.initialize_application()

from cinder import service  # noqa: E402
from oslo_config import cfg  # noqa: E402

running = []


def start(**about) -> None:
    one = service.Service.create(**about)
    one.start()
    running.append(one)


start(binary=constants.SCHEDULER_BINARY)
start(binary=constants.VOLUME_BINARY, host=f"{cfg.CONF.host}@nothing", service_name="nothing", coordination=True)
waitress.serve(application, host="127.0.0.1", port=PORT, threads=8, _quiet=True)

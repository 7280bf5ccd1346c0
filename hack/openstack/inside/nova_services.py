"""All of Nova in one process: API, metadata service, conductor, scheduler and a compute service for each name.

    nova_services.py CONFIG PORT METADATA_PORT NAME,NAME,…

They talk over oslo.messaging's in-process transport: no broker is needed. Runs in the cloud's own environment.
"""

import os
import sys
import threading

CONFIG, PORT, METADATA_PORT, COMPUTES = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4].split(",")
sys.argv = ["nova", "--config-file", CONFIG]  # Nova reads the command line when it is imported
os.environ["OS_NOVA_CONFIG_DIR"] = os.path.dirname(CONFIG)

from nova import monkey_patch  # noqa: E402

monkey_patch.patch(backend="threading")

import nova.conf  # noqa: E402
import os_vif  # noqa: E402
import waitress  # noqa: E402
from nova import context, objects, service  # noqa: E402
from nova.compute import rpcapi as compute_rpc  # noqa: E402
from nova.conductor import rpcapi as conductor_rpc  # noqa: E402
from nova.scheduler import rpcapi as scheduler_rpc  # noqa: E402
from nova.wsgi import metadata, osapi_compute  # noqa: E402

running = []


def start(**about: str) -> None:
    one = service.Service.create(**about)
    one.start()
    running.append(one)


os_vif.initialize()
objects.Service.enable_min_version_cache()
start(binary="nova-conductor", topic=conductor_rpc.RPC_TOPIC)
for name in COMPUTES:
    nova.conf.CONF.set_override("host", name)
    start(binary="nova-compute", topic=compute_rpc.RPC_TOPIC, topic_alt=compute_rpc.RPC_TOPIC_ALT, host=name)
nova.conf.CONF.clear_override("host")
objects.host_mapping.discover_hosts(context.get_admin_context())
start(binary="nova-scheduler", topic=scheduler_rpc.RPC_TOPIC)
asked_by_guests = {"host": "127.0.0.1", "port": METADATA_PORT, "threads": 2, "_quiet": True}
threading.Thread(target=waitress.serve, args=(metadata.application,), kwargs=asked_by_guests, daemon=True).start()
waitress.serve(osapi_compute.application, host="127.0.0.1", port=PORT, threads=12, _quiet=True)

"""Serve one OpenStack API on loopback: ``serve.py MODULE PORT THREADS``. Runs in the cloud's own environment."""

import importlib
import sys

import waitress

module, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.argv = [module]  # the services read the command line
application = importlib.import_module(module).application
waitress.serve(application, host="127.0.0.1", port=port, threads=threads, _quiet=True)

"""The entry point. Imports next to nothing: what a command needs is imported when that command runs.

``nodewright --help`` must answer at once, and ``validate`` must run where no cluster library can be loaded, so the
command table below is plain data and the modules behind it are named, not imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from nodewright.cli.exits import FAILED, INTERRUPTED, OK, USAGE, CliError
from nodewright.cli.screen import say

if TYPE_CHECKING:
    import typer

COMMANDS: dict[str, str] = {
    "up": "Start the embedded control plane with the controllers, in the foreground",
    "down": "Stop the control plane that `nodewright up` has started",
    "ls": "List the embedded control planes of this machine",
    "backup": "Write all that a control plane of `nodewright up` keeps into an encrypted file",
    "restore": "Make a control plane's data folder from a backup",
    "users": "Give people access to the control plane of `nodewright up`, or take it",
    "demo": "Show the main job live: create, scale, upgrade, roll and delete Machines",
    "create": "Make a cluster from files, without a management cluster",
    "delete": "Take down what `nodewright create` has made",
    "move": "Move a Cluster with its Machines to another management cluster",
    "generate": "Print manifests of a cluster from a template",
    "run": "Run the controllers against a cluster (kubeconfig or in-cluster)",
    "install": "Install the kinds, and with --controllers the controllers, into a cluster",
    "upgrade": "Say which versions may come next, and upgrade Nodewright itself",
    "uninstall": "Take the controllers, and with --crds the kinds, out of a cluster",
    "webhook": "Serve the validating admission webhook over TLS",
    "gateway": "Serve other programs: the Cluster Autoscaler over gRPC, cloudpools, a proxy before one",
    "validate": "Check manifests offline: all errors, with file, line and field",
    "convert": "Rewrite manifests from providerSpec or text to providerConfig, or back",
    "bootstrap": "Make the data with which hosts join a cluster as Nodes",
    "plan": "Dry run: what the controllers would do now, and why",
    "get": "List Clusters of several management clusters",
    "diff": "Show how two declarations differ: files, objects, Clusters, contexts",
    "status": "Show the whole fleet: what there is, who decides, and only what is wrong",
    "ui": "Show the fleet in a browser, live and read-only",
    "describe": "Show a Cluster, what owns Machines, a Machine or a health check as a tree with reasons",
    "logs": "Tell the story of a Machine: events, conditions and calls of its provider by time",
    "explain": "Show the fields of a provider's configuration: type, default, what they mean",
    "hosts": "Look after your own machines: list, check, add and release hosts of SSHHostPools",
    "rollout": "Follow, pause, restart and undo rollouts of a MachineDeployment",
    "autoscaler": "Ask the autoscaler why a pod gets no Node, or a group stays as it is",
    "simulate": "Run random schedules with crashes, stale views and lost events",
    "version": "Print the version",
    "completion": "Print what makes bash, zsh or fish complete commands and names",
}
"""Name of a command (and of its module in ``nodewright.cli.commands``) to its line in the help."""

OF_UP = frozenset({"ls", "down"})
"""Commands about the planes of ``up``: people type them behind it, too."""
COMPLETE = "_NODEWRIGHT_COMPLETE"
"""The variable of the environment by which a shell wants to know what fits."""
PLUGIN = "kubectl-nodewright"
"""Under this name, a second console script, kubectl finds the program: ``kubectl nodewright COMMAND``."""


def program() -> str:
    """What people type to run this."""
    called = os.path.basename(sys.argv[0] if sys.argv else "").removesuffix(".exe")
    return "kubectl nodewright" if called == PLUGIN else "nodewright"


def help_text() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = [
        f"Usage: {program()} COMMAND [OPTIONS]",
        "",
        "Declarative machines for Kubernetes: YAML in, Machines become Nodes.",
        "",
        "Commands:",
        *(f"  {name.ljust(width)}  {text}" for name, text in COMMANDS.items()),
        "",
        "Options:",
        "  --help                Show this text; `nodewright COMMAND --help` shows a command's options",
        "  --version             Print the version",
        "  --install-completion  Install completion for the current shell",
        "  --show-completion     Print completion for the current shell",
        "",
        "To begin with: `nodewright demo` shows everything in a minute, `nodewright up` starts a control plane to use.",
    ]
    return "\n".join(lines)


def build_app(names: Sequence[str]) -> typer.Typer:
    """A typer application of the named commands; only their modules are imported."""
    import importlib  # noqa: PLC0415

    import typer  # noqa: PLC0415

    from nodewright.cli.help import Command  # noqa: PLC0415

    app = typer.Typer(
        name="nodewright",
        help="Declarative machines for Kubernetes: YAML in, Machines become Nodes.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    app.callback()(_root)
    for name in names:
        module = importlib.import_module(f"nodewright.cli.commands.{name}")
        if hasattr(module, "group"):
            app.add_typer(module.group, name=name, help=module.HELP, short_help=COMMANDS[name])
        else:
            app.command(name, cls=Command, help=module.HELP, short_help=COMMANDS[name])(module.command)
    if "structlog" in sys.modules:
        from nodewright.runtime.telemetry.logs import configure  # noqa: PLC0415

        configure(level="warning")  # standard output is the command's; those with flags for it configure it again
    return app


def _root() -> None:
    """Keeps typer treating a single command as a command of its own."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code (see ``nodewright.cli.exits``)."""
    sys.exit(run(sys.argv[1:] if argv is None else list(argv)))


def run(argv: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output (`| head`) has seen enough; that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


def _run(argv: Sequence[str]) -> int:
    if COMPLETE not in os.environ:
        if not argv or argv[0] in ("--help", "-h", "help"):
            print(help_text())
            return OK if argv else USAGE
        if argv[0] == "--version":
            argv = ["version", *argv[1:]]
        if argv[0] == "up" and OF_UP & set(argv[1:2]):
            argv = argv[1:]
        if not argv[0].startswith("-") and argv[0] not in COMMANDS:
            return _fail(_unknown(argv[0]))
    words = _typed() if COMPLETE in os.environ else argv
    names = [words[0]] if words and words[0] in COMMANDS else list(COMMANDS)
    try:
        code = build_app(names)(list(argv), prog_name=program(), standalone_mode=False)
        return code if isinstance(code, int) else OK
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else (OK if stop.code is None else FAILED)
    except CliError as error:
        return _fail(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        if type(error).__name__ == "Abort":  # what the option parser makes of Ctrl-C
            return INTERRUPTED
        if (usage := _as_usage_error(error, argv)) is not None:
            return _fail(usage)
        if os.environ.get("NODEWRIGHT_DEBUG"):
            raise
        name = type(error).__name__
        return _fail(CliError(f"internal error: {name}: {error}", "Set NODEWRIGHT_DEBUG=1 to see where it came from"))


def _typed() -> list[str]:
    """The words behind the program's name on the line that a shell completes."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:]


def _as_usage_error(error: Exception, argv: Sequence[str]) -> CliError | None:
    """What the option parser complains about, in our form; it is known by its shape, since typer may bring its own."""
    describe = getattr(error, "format_message", None)
    if describe is None or not hasattr(error, "exit_code"):
        return None
    command = f"nodewright {argv[0]}" if argv and argv[0] in COMMANDS else "nodewright"
    command = getattr(getattr(error, "ctx", None), "command_path", command)
    message = str(describe()).replace("Value error, ", "").replace("Input should be", "must be")
    return CliError(message, f"`{command} --help` shows what there is", USAGE)


def _unknown(name: str) -> CliError:
    import difflib  # noqa: PLC0415

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    hint = f"Did you mean `nodewright {near[0]}`?" if near else f"Commands: {', '.join(COMMANDS)}"
    return CliError(f'unknown command "{name}"', hint, USAGE)


def _fail(error: CliError) -> int:
    say(f"nodewright: {error.line()}", err=True)
    return error.code

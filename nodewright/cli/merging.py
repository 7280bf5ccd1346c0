"""Options by which a command adds a context to the kubeconfig that kubectl reads, beside the file of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nodewright.cli.exits import USAGE, CliError


@dataclass(frozen=True, slots=True)
class MergeFlags:
    """Without them the kubeconfig stays a separate file."""

    merge_kubeconfig: Annotated[
        bool,
        typer.Option("--merge-kubeconfig", help="Add a context to the kubeconfig that kubectl reads, too."),
    ] = False
    merge_as: Annotated[
        str | None,
        typer.Option("--merge-as", metavar="NAME", help="The same, with this name for the context."),
    ] = None

    def name(self, usual: str) -> str:
        """The context's name; "": none is to be added. Raises CliError (usage)."""
        if self.merge_as is not None and not self.merge_as.strip():
            raise CliError("--merge-as: the name of a context is empty", code=USAGE)
        return self.merge_as or (usual if self.merge_kubeconfig else "")


def merge_into_kubectls(kubeconfig: Path, name: str) -> str:
    """Add the current context of ``kubeconfig`` as ``name``; a line that says where. Raises CliError."""
    from nodewright.cli.kubeconfigs import kubectls_file, merge  # noqa: PLC0415

    path = kubectls_file()
    if path.resolve() == kubeconfig.resolve():
        hint = "Unset KUBECONFIG, or leave --merge-kubeconfig out"
        raise CliError(f"{path} is the separate kubeconfig itself, and can't be merged into itself", hint)
    merge(path, kubeconfig.read_bytes(), name)
    return f"context {name} in {path}"

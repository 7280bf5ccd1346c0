"""What a host has said of its own bootstrap, once its token has proven that it was this host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """``step`` of ``steps`` is running, or has failed with exit status ``code`` at try number ``attempt``.

    ``action``: what kind of step it is ("binary", "command"; ``controllers.bootstrap.steps``). ``sequence`` grows from
    report to report of one host. ``log``: the end of what the step has printed.
    ``done``: all steps have succeeded; hosts of control planes say so.
    """

    token_id: str
    sequence: int
    step: int
    steps: int
    name: str
    action: str = ""
    failed: bool = False
    code: int = 0
    attempt: int = 1
    log: str = ""
    done: bool = False

    @property
    def progress(self) -> str:
        """``8/13 install kubelet 1.36.3``."""
        return f"{self.step}/{self.steps} {self.name}"

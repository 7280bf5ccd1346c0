"""Both planes, what they answered to every story, and the table of what was compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from hack.realplane import RealPlane
from nodewright.apiserver.app import APIServerConfig
from nodewright.apiserver.app.background import serve_in_background
from nodewright.crds import load_crds
from tests.differential.comparing import TALLY, Both
from tests.differential.speech import Server
from tests.kubectl.manifests import WIDGET_CRD


@pytest.fixture(scope="session")
def both(real_plane: RealPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A client of each."""
    folder = tmp_path_factory.mktemp("embedded") / "data"
    with serve_in_background(APIServerConfig(data_dir=folder, crds=(*load_crds(), WIDGET_CRD))) as background:
        ours, theirs = Server(background.plane.kubeconfig_path), Server(real_plane.kubeconfig)
        yield Both(ours, theirs)
        ours.close()
        theirs.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Cases compared and differences, by verb; counted from the reports, which also come from other processes."""
    rows: dict[str, Counter[str]] = {}
    reports = [report for several in terminalreporter.stats.values() for report in several]
    for report in reports:
        if getattr(report, "when", "") != "call":
            continue
        for name, counts in report.user_properties:
            if name == TALLY:
                for verb, found in counts.items():
                    rows.setdefault(verb, Counter()).update(found)
    if not rows:
        return
    columns = ("cases", "equal", "listed", "not listed")
    terminalreporter.section("embedded plane beside kube-apiserver")
    terminalreporter.write_line(f"{'verb':<20}" + "".join(f"{name:>12}" for name in columns))
    total = sum(rows.values(), Counter[str]())
    for verb, found in [*sorted(rows.items()), ("all", total)]:
        terminalreporter.write_line(f"{verb:<20}" + "".join(f"{found[name]:>12}" for name in columns))

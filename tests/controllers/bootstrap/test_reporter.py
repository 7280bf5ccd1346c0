"""The real script and its reporting program, against a server that keeps what it is sent."""

from __future__ import annotations

import base64
import json
import shlex
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from api import names
from controllers.bootstrap import report, reporter, shell
from controllers.bootstrap.steps import Command, File, Files, Reporting, Step, Steps
from controllers.kernel.host_report import Report
from hack import credentials

SECRET = "0123456789abcdef"
TOKEN = f"abcdef.{SECRET}"


class Events:
    """What was posted, each with its headers; ``wait(n)`` until there are so many."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        credentials.write_all(folder, "https://127.0.0.1")
        self.ca = (folder / "ca.crt").read_text()
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[tuple[str, str]] = []
        self._more = threading.Condition()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.crt", folder / "server.key")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer._more:
                    outer.bodies.append(json.loads(body))
                    outer.paths.append((self.path, self.headers["Authorization"]))
                    outer._more.notify_all()
                self.send_response(201)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"

    def wait(self, number: int) -> list[dict[str, Any]]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.bodies) >= number, 180), f"{len(self.bodies)} Events"
            return self.bodies


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Events]:
    made = Events(tmp_path / "server")
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def script(folder: Path, *steps: Step, events: Events, **changes: Any) -> str:
    """The script for ``steps`` with all of its files below ``folder``, without pauses between tries."""
    reporting = replace(Reporting(events.url, events.ca, TOKEN), **changes)
    config = folder / "etc" / "report.json"
    text = shell.render(Steps(steps, reporting=reporting)).replace("/etc/nodewright", str(config.parent))
    return text.replace(shell.STATE, str(folder)).replace('sleep "$pause"', "sleep 0.1")


def run(text: str, mode: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-s", *([mode] if mode else [])], input=text, text=True, check=False, capture_output=True, timeout=300
    )


def fails(name: str, words: str, code: int = 1) -> Step:
    return Step(name, Command(("sh", "-c", f"printf '%s' {shlex.quote(words)}; exit {code}")))


FINE = Step("first", Command(("true",)))


def test_a_failed_step_is_reported_with_its_number_name_exit_status_and_log(events: Events, tmp_path: Path) -> None:
    text = script(tmp_path, FINE, fails("install kubelet 1.36.9", "no such kubelet", 7), events=events)
    assert run(text).returncode == 7

    (event,) = events.wait(1)
    (sent,) = events.paths
    assert sent == (f"/api/v1/namespaces/{names.BOOTSTRAP_NAMESPACE}/events", f"Bearer {TOKEN}")
    found = report.verified(event, SECRET)
    assert found is not None
    expected = Report("abcdef", found.sequence, 2, 2, "install kubelet 1.36.9", "command", True, 7, 1)
    assert found == replace(expected, log="no such kubelet")
    assert event["involvedObject"]["namespace"] == event["metadata"]["namespace"] == names.BOOTSTRAP_NAMESPACE
    assert event["message"] == "2/2 install kubelet 1.36.9: failed with 7, attempt 1"


def test_the_host_of_a_control_plane_says_that_all_its_steps_have_succeeded(events: Events, tmp_path: Path) -> None:
    slow = Step("join the control plane", Command(("sh", "-c", f"until [ -e {tmp_path}/sequence.read ]; do :; done")))
    text = script(tmp_path, FINE, slow, events=events, tells_end=True)
    # The program has to be there before the steps end, as it is where kubeadm takes minutes.
    reads = "hidden = secrets(config)\n    told,"
    assert reads in text
    text = text.replace(reads, "hidden = secrets(config)\n    open(STATE + '/sequence.read', 'w').close()\n    told,")
    assert run(text).returncode == 0
    found = report.verified(events.wait(1)[-1], SECRET)
    assert found is not None
    assert (found.done, found.failed, found.step, found.steps) == (True, False, 2, 2)


def test_a_host_whose_steps_failed_never_says_that_it_is_done(events: Events, tmp_path: Path) -> None:
    assert run(script(tmp_path, FINE, fails("join", "no"), events=events, tells_end=True)).returncode == 1
    found = [report.verified(event, SECRET) for event in events.wait(1)]
    assert [each.done for each in found if each is not None] == [False]


SECRETS = [
    f"token {TOKEN} refused",
    f"only {SECRET} of it",
    f"as base64 {base64.b64encode(SECRET.encode()).decode()}",
    "curl http://someone:hunter22@proxy.example:3128/ failed",
    "password=hunter22 was wrong",
    "Authorization: Bearer hunter22hunter22",
    "a line of the file: hunter22-of-a-file",
]


@pytest.mark.parametrize("words", SECRETS)
def test_no_secret_leaves_the_host_in_a_report_or_on_its_console(words: str, events: Events, tmp_path: Path) -> None:
    secret_file = Files((File(str(tmp_path / "secret"), "hunter22-of-a-file\n", 0o600, secret=True),))
    text = script(tmp_path, Step("write", secret_file), fails("try", f"before\n{words}\nafter"), events=events)
    done = run(text)

    (event,) = events.wait(1)
    told = json.dumps(event)
    found = report.verified(event, SECRET)
    assert found is not None
    assert found.log.startswith("before\n")
    assert found.log.endswith("\nafter")
    for hidden in ("hunter22", SECRET, base64.b64encode(SECRET.encode()).decode()):
        assert hidden not in told
    assert SECRET not in done.stdout
    assert "hunter22-of-a-file" not in done.stdout


def test_a_long_log_gives_its_end_without_a_part_of_a_line(events: Events, tmp_path: Path) -> None:
    lines = Step("talk", Command(("sh", "-c", f"for i in $(seq 400); do echo {SECRET}$i é; done; exit 1")))
    run(script(tmp_path, lines, events=events))
    found = report.verified(events.wait(1)[0], SECRET)
    assert found is not None
    assert found.log.endswith("***400 é\n")
    assert 1500 < len(found.log.encode()) <= report.LONGEST_LOG


def test_bytes_that_are_no_text_are_reported_as_text(events: Events, tmp_path: Path) -> None:
    run(script(tmp_path, Step("talk", Command(("sh", "-c", r"printf 'a\377\033[31m\000b'; exit 1"))), events=events))
    found = report.verified(events.wait(1)[0], SECRET)
    assert found is not None
    assert found.log == "a\ufffd [31m b"


def test_a_step_that_failed_is_tried_again_until_it_succeeds_and_the_others_are_not(
    events: Events, tmp_path: Path
) -> None:
    first, tries = tmp_path / "first", tmp_path / "tries"
    once = Step("once", Command(("sh", "-c", f"echo x >> {first}")))
    third = f"echo x >> {tries}; echo try $(wc -l < {tries}); [ $(wc -l < {tries}) -eq 3 ]"
    done = run(script(tmp_path, once, Step("third", Command(("sh", "-c", third))), events=events), shell.KEEP_TRYING)

    assert done.returncode == 0
    assert first.read_text() == "x\n"
    assert tries.read_text() == "x\n" * 3
    assert json.loads((tmp_path / "result").read_text())["code"] == 0


def test_what_was_begun_is_undone_before_it_is_tried_again_and_never_before_the_first_try(
    events: Events, tmp_path: Path
) -> None:
    story, joined = tmp_path / "story", tmp_path / "joined"
    join = f"echo join >> {story}; [ $(grep -c join {story}) -eq 2 ] && touch {joined}"
    undo = Command(("sh", "-c", f"echo reset >> {story}"))
    step = Step("join the cluster", Command(("sh", "-c", join)), (str(joined),), undo=undo)
    text = script(tmp_path, step, events=events)
    assert run(text).returncode != 0  # as if the host had been switched off after this
    assert run(text).returncode == 0
    assert run(text).returncode == 0
    assert story.read_text() == "join\nreset\njoin\n"


def test_a_later_report_has_a_higher_number_also_after_a_restart(events: Events, tmp_path: Path) -> None:
    for number in (1, 2):
        run(script(tmp_path, fails("try", "no"), events=events))
        events.wait(number)
    found = [report.verified(event, SECRET) for event in events.bodies]
    assert [each.sequence for each in found if each is not None] == sorted({each.sequence for each in found if each})
    assert len(found) == 2


def test_progress_is_reported_while_a_step_takes_long(events: Events, tmp_path: Path) -> None:
    """The pause before the first one is left out here."""
    wait = Step("take long", Command(("sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.1; done")))
    text = script(tmp_path, FINE, wait, events=events).replace(f"clock() + {reporter.PAUSE}", "clock() + 0")
    process = subprocess.Popen(["sh", "-s"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    said = []
    while not said or said[-1].name != "take long":
        events.wait(len(said) + 1)
        said = [found for event in events.bodies if (found := report.verified(event, SECRET))]
    (tmp_path / "go").touch()
    assert process.wait(180) == 0
    assert len(events.bodies) <= 2
    assert not said[-1].failed


def test_a_host_that_joins_fast_reports_nothing_and_keeps_nothing(events: Events, tmp_path: Path) -> None:
    assert run(script(tmp_path, FINE, events=events)).returncode == 0
    assert events.bodies == []
    assert not (tmp_path / "etc" / "report.json").exists()
    left = [path for path in tmp_path.rglob("*") if path.is_file() and SECRET in path.read_text(errors="replace")]
    assert left == []


@pytest.mark.parametrize("trouble", ["nobody listens", "another CA", "no Python"])
def test_what_keeps_it_from_reporting_does_not_change_how_the_bootstrap_ends(
    trouble: str, events: Events, tmp_path: Path
) -> None:
    other = Events(tmp_path / "other")
    other.server.server_close()
    changes = {"nobody listens": {"server": other.url}, "another CA": {"ca": other.ca}}.get(trouble, {})
    text = script(tmp_path, FINE, fails("try", "no", 9), events=events, **changes)
    if trouble == "no Python":
        text = text.replace("command -v ", "command -v /nowhere")
    done = run(text)
    assert done.returncode == 9
    assert "2/2 try failed with 9:\nno" in done.stdout
    assert events.bodies == []


def test_the_program_needs_no_newer_python_than_rhel_8_has() -> None:
    compile(reporter.PROGRAM, "report.py", "exec", dont_inherit=True)
    import ast  # noqa: PLC0415

    ast.parse(reporter.PROGRAM, feature_version=(3, 6))

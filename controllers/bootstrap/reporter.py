"""The program with which a host tells the API server how far its bootstrap is, and the file that tells it to whom.

It runs beside the script of ``shell``, reads what that writes below ``shell.STATE``, and creates Events with the host's
own bootstrap token (``report`` reads them). It never holds the bootstrap up, and a host without Python 3 does without
it: then its console is all there is. It has to run with the standard library of Python 3.6, RHEL 8's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from api import names
from controllers.bootstrap import report
from controllers.bootstrap.steps import File, Reporting, Steps

CONFIG = "/etc/nodewright/report.json"
PROGRAM_NAME = "report.py"
PAUSE = 10
"""Seconds between two reports of progress. A host that joins faster makes none."""
MOST_REPORTS = 60
"""State of one run of the script."""


def config(reporting: Reporting, steps: Steps) -> File:
    """To whom and as whom the program reports, and what it has to hide."""
    token_id, _, secret = reporting.token.partition(".")
    document = {
        "server": reporting.server,
        "ca": reporting.ca,
        "id": token_id,
        "secret": secret,
        "namespace": names.BOOTSTRAP_NAMESPACE,
        "actions": [type(step.action).__name__.lower() for step in steps.steps],
        "secretFiles": secret_files(steps),
        **({"tellsEnd": True} if reporting.tells_end else {}),
    }
    return File(CONFIG, json.dumps(document, sort_keys=True), 0o600, secret=True)


def secret_files(steps: Steps) -> Sequence[str]:
    """Files whose lines must not be repeated. Those that are forgotten hold the token, which is hidden anyway."""
    found = (file for step in steps.steps for file in getattr(step.action, "files", ()) if isinstance(file, File))
    return sorted({file.path for file in found if file.secret} - set(steps.forget))


_TEMPLATE = r'''
import base64, hashlib, hmac, json, os, re, signal, socket, ssl, sys, time
from urllib import request

STATE = sys.argv[1]
GENERAL = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S), "***"),
    (re.compile(r"://[^/@\s]+@"), "://***@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}"), r"\1 ***"),
    (re.compile(r"(?i)([a-z_-]*(?:password|passwd|pwd|secret|token|key)=)\S+"), r"\1***"),
    (re.compile(r"(?i)(password['\"]?\s*:\s*)\S+"), r"\1***"),
    (re.compile(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b"), "***"),
)


def read(name, most=65536):
    try:
        with open(os.path.join(STATE, name), "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def secrets(config):
    found = {config["secret"], config["id"] + "." + config["secret"]}
    for path in config["secretFiles"]:
        for line in read(path, 1 << 20).splitlines():
            found.update(part for part in (line.strip(), line.strip().strip("\"',")) if len(part) >= 6)
    found.update([base64.b64encode(each.encode()).decode() for each in found])
    return sorted(found, key=len, reverse=True)


def masked(text, hidden):
    for each in hidden:
        text = text.replace(each, "***")
    for pattern, instead in GENERAL:
        text = pattern.sub(instead, text)
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", text)


def tail(hidden):
    """The end of the failed step's log. A line of which only a part was kept may hold a part of a secret: it goes."""
    text = read("failed.log")
    if len(text.encode()) >= @KEPT@:
        text = text.partition("\n")[2] or text[512:]
    return masked(text, hidden).encode()[-@LOG@:].decode("utf-8", "ignore")


def sequence():
    """Grows from report to report, also over a reboot, and if the clock goes back."""
    number = max(int(read("sequence") or 0) + 1, int(time.time()))
    with open(os.path.join(STATE, "sequence"), "w") as file:
        file.write(str(number))
    return number


def made(config, hidden, progress, failure):
    """The content of a report; None if there is nothing to tell. `failure`: code, attempt, progress at that time."""
    code, attempt = 0, 1
    if failure:
        code, attempt, progress = failure.split(" ", 2)
    found = re.match(r"(\d+)/(\d+) (.*)", progress)
    if not found:
        return None
    step, steps = int(found.group(1)), int(found.group(2))
    return {
        "token": config["id"], "step": step, "steps": steps, "name": masked(found.group(3), hidden)[:@NAME@],
        "action": config["actions"][step - 1] if step <= len(config["actions"]) else "", "failed": bool(failure),
        "code": int(code), "attempt": int(attempt), "log": tail(hidden) if failure else "",
    }


def all_done(config, hidden, progress):
    """Tells that all steps have succeeded. For half a minute, since an API server that has just begun may be slow."""
    said, until = made(config, hidden, progress, ""), time.monotonic() + 30
    while said and not send(config, dict(said, done=True)) and time.monotonic() < until:
        time.sleep(@PAUSE@)


def event(config, said):
    text = json.dumps(dict(said, sequence=sequence()), sort_keys=True, ensure_ascii=False)
    signature = hmac.new(config["secret"].encode(), ("@DOMAIN@\n" + text).encode(), hashlib.sha256).hexdigest()
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    words = "%(step)d/%(steps)d %(name)s" % said
    if said["failed"]:
        words += ": failed with %(code)d, attempt %(attempt)d" % said
    return {
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "generateName": config["id"] + "-", "namespace": config["namespace"],
            "annotations": {"@REPORT@": text, "@SIGNATURE@": signature},
        },
        "involvedObject": {"apiVersion": "v1", "kind": "Host", "namespace": config["namespace"], "name": config["id"]},
        "type": "Warning" if said["failed"] else "Normal",
        "reason": "BootstrapFailed" if said["failed"] else "BootstrapProgressed",
        "message": words, "source": {"component": "nodewright-bootstrap", "host": socket.gethostname()},
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    }


def too_long(_number, _frame):
    raise OSError("no answer")


def send(config, said):
    """Whether the API server took it. Ends within 10 s, whatever the network does."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(10)
    try:
        context = ssl.create_default_context(cadata=config["ca"])
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)  # CAs of clusters are older than its rules
        url = "%(server)s/api/v1/namespaces/%(namespace)s/events" % config
        headers = {"Authorization": "Bearer %(id)s.%(secret)s" % config, "Content-Type": "application/json"}
        asked = request.Request(url, json.dumps(event(config, said)).encode(), headers)
        request.urlopen(asked, timeout=5, context=context).close()
        return True
    except Exception:
        return False
    finally:
        signal.alarm(0)


def main():
    config, parent, clock = json.loads(read("@CONFIG@")), os.getppid(), time.monotonic
    hidden = secrets(config)
    told, last_failure, waiting, count, attempts = "", "", None, 0, 0
    due, repeats = clock() + @PAUSE@, 0.0
    while count < @MOST@ and attempts < 10 * @MOST@:
        ended = os.path.exists(os.path.join(STATE, "ended"))
        progress, failure = read("progress").strip(), read("failure").strip()
        if failure and failure != last_failure:
            hidden = secrets(config)
            said = made(config, hidden, progress, failure)
            known = dict(said or {}, attempt=0)
            if said and (known != told or clock() >= repeats):
                waiting, told, due, repeats = said, known, 0.0, clock() + 60.0
            last_failure = failure
        elif waiting is None and clock() >= due and not ended:
            said = made(config, hidden, progress, "")
            at_it = isinstance(told, dict) and said and told["failed"] and told["step"] == said["step"]
            if said and said != told and not at_it:
                waiting, told = said, said
        if waiting is not None and clock() >= due:
            attempts += 1
            due = clock() + @PAUSE@
            if send(config, waiting):
                waiting, count = None, count + 1
        if ended and config.get("tellsEnd") and os.path.exists(os.path.join(STATE, "all-done")):
            return all_done(config, hidden, progress)
        if ended or os.getppid() != parent:
            return
        time.sleep(0.5)


main()
'''
KEPT = 8192
"""Bytes of a failed step's log that the script keeps for the program."""
PROGRAM = (
    _TEMPLATE.lstrip()
    .replace("@KEPT@", str(KEPT))
    .replace("@LOG@", str(report.LONGEST_LOG))
    .replace("@NAME@", str(report.LONGEST_NAME))
    .replace("@DOMAIN@\\n", f"{report.DOMAIN}\\n")
    .replace("@REPORT@", names.REPORT_ANNOTATION)
    .replace("@SIGNATURE@", names.REPORT_SIGNATURE_ANNOTATION)
    .replace("@CONFIG@", CONFIG)
    .replace("@PAUSE@", str(PAUSE))
    .replace("@MOST@", str(MOST_REPORTS))
)
"""Python of the host: ``python3 report.py STATE``."""

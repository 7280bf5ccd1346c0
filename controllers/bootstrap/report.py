"""What a host says of its bootstrap: read from an Event, and believed only with the signature of its own token.

Any holder of a bootstrap token may create Events in the namespace of reports, also in the name of another host. So a
report carries an HMAC-SHA256 with the secret of the token that it names: whoever does not have that secret can't speak
for its Machine. All of it is text of others: bounded here, and made visible.
"""

from __future__ import annotations

import hmac
import json
import re
from typing import Any

from api import names
from api.visible import visible
from controllers.kernel.host_report import Report
from controllers.kernel.refs import Obj, annotations_of

DOMAIN = "nodewright-bootstrap-report/v1"
"""Begins what is signed, so that no other signature with the same secret is one of a report."""
LONGEST_REPORT = 8192
"""Characters of a report's JSON; longer ones are passed over. ``reporter`` writes at most about half of it."""
LONGEST_LOG = 2048
"""Bytes of a step's log in a report: its end."""
LONGEST_NAME = 128
LONGEST_ACTION = 32
MOST_STEPS = 999
_TOKEN_ID = re.compile(r"[a-z0-9]{6}")
_LARGEST = 2**53
"""Numbers beyond it are not the same in every JSON reader."""


def token_id_of(event: Obj) -> str:
    """The token that an Event's report names, which nothing proves yet; "" if it carries no report."""
    report = _parsed(_text_of(event))
    return report.token_id if report is not None else ""


def verified(event: Obj, secret: str) -> Report | None:
    """The report in ``event``, if whoever made it has ``secret``, the part of the token behind its dot."""
    text = _text_of(event)
    signature = annotations_of(event).get(names.REPORT_SIGNATURE_ANNOTATION)
    if not text or not secret or not isinstance(signature, str):
        return None
    if not hmac.compare_digest(signature.encode("utf-8", "replace"), sign(text, secret).encode()):
        return None
    return _parsed(text, secret)


def sign(text: str, secret: str) -> str:
    """Hexadecimal digits of the HMAC-SHA256 over a report's JSON, as ``reporter`` makes it."""
    content = f"{DOMAIN}\n{text}".encode("utf-8", "surrogatepass")
    return hmac.new(secret.encode(), content, "sha256").hexdigest()


def to_object(report: Report, machine_uid: str, resource_version: str) -> dict[str, Any]:
    """A verified report as the cache keeps it: one Event for each token, in place of those that the host made."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": report.token_id,
            "namespace": names.BOOTSTRAP_NAMESPACE,
            "uid": f"{machine_uid}/{report.token_id}",
            "resourceVersion": resource_version,
            "annotations": {names.REPORT_ANNOTATION: as_text(report)},
        },
    }


def of_object(event: Obj) -> Report | None:
    """The report that ``to_object`` put into ``event``."""
    return _parsed(_text_of(event))


def as_text(report: Report) -> str:
    """The JSON of a report, as a host writes it."""
    return json.dumps(
        {
            "token": report.token_id,
            "sequence": report.sequence,
            "step": report.step,
            "steps": report.steps,
            "name": report.name,
            "action": report.action,
            "failed": report.failed,
            "code": report.code,
            "attempt": report.attempt,
            "log": report.log,
            **({"done": True} if report.done else {}),
        },
        sort_keys=True,
        ensure_ascii=False,
    )


def _text_of(event: Obj) -> str:
    text = annotations_of(event).get(names.REPORT_ANNOTATION)
    return text if isinstance(text, str) and len(text) <= LONGEST_REPORT else ""


def _parsed(text: str, secret: str = "") -> Report | None:
    """None for anything that is no report."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    step, steps = _number(parsed.get("step"), MOST_STEPS), _number(parsed.get("steps"), MOST_STEPS)
    token, name = parsed.get("token"), " ".join(_words(parsed.get("name"), secret).split())[:LONGEST_NAME]
    sequence = _number(parsed.get("sequence"), _LARGEST)
    if not isinstance(token, str) or not _TOKEN_ID.fullmatch(token):
        return None
    if not name or not step or not steps or step > steps or sequence is None:
        return None
    return Report(
        token_id=token,
        sequence=sequence,
        step=step,
        steps=steps,
        name=name,
        action=_words(parsed.get("action"), secret)[:LONGEST_ACTION],
        failed=parsed.get("failed") is True,
        code=_number(parsed.get("code"), 255) or 0,
        attempt=_number(parsed.get("attempt"), _LARGEST) or 1,
        log=_words(parsed.get("log"), secret)[-LONGEST_LOG:],
        done=parsed.get("done") is True and parsed.get("failed") is not True and step == steps,
    )


def _number(value: Any, largest: int) -> int | None:
    return value if type(value) is int and 0 <= value <= largest else None


def _words(value: Any, secret: str) -> str:
    """The host leaves secrets out of its logs; what it should have overlooked ends here."""
    if not isinstance(value, str):
        return ""
    return visible(value.replace(secret, "***") if secret else value)

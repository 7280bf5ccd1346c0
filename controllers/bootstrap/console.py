"""What a host's console shows, as a condition may quote it: text of others, in which anything may stand."""

from __future__ import annotations

import re

from api.secrets import HIDDEN, without_secrets

MOST_LINES = 12
LONGEST = 600
"""Characters of what is quoted."""
_LOOKED_AT = 16384
"""Characters from the end of the console; a provider may hand over more."""
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and moves of the cursor (CSI)
    r"|\x1b\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?"  # titles (OSC)
    r"|\x1b[ -/]*[0-~]?"  # the other sequences of ECMA-48
)
_END_OF_KEY = re.compile(r"\A(?:(?!-----BEGIN )[\s\S])*?-----END [A-Z ]{0,32}PRIVATE KEY-----")
"""A key whose first lines were cut off, by us or by who keeps the console."""


def last_lines(console: str) -> str:
    """The last lines without escapes and secrets, joined by " | "; "" if there are none.

    A line that is begun anew (a bar of progress) counts as it ends, and one that repeats itself counts once. Secrets
    are masked before anything is cut off: half a token would no longer look like one.
    """
    end = console[-_LOOKED_AT:]
    if len(console) > len(end):
        end = " ".join(end.split(maxsplit=1)[1:])  # the first word is one of which only a part may be left
    plain = without_secrets(_END_OF_KEY.sub(HIDDEN, _ESCAPES.sub("", end)))
    ends = (line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    lines = [" ".join("".join(c if c.isprintable() else " " for c in line).split()) for line in ends]
    kept = list(dict.fromkeys(line for line in lines if line))[-MOST_LINES:]
    text = " | ".join(kept)
    return text if len(text) <= LONGEST else f"…{text[-(LONGEST - 1) :]}"

"""Last lines of a console: what others wrote, made fit for a condition."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controllers.bootstrap.console import LONGEST, MOST_LINES, last_lines

TOKEN = "abcdef.0123456789abcdef"
TOLD = {
    "": "",
    "\n \n": "",
    "boot\n\n  done  now \n": "boot | done now",
    "\x1b[1;31mred\x1b[0m\x1b]0;title\x07 end": "red end",
    "10%\r50%\r100%\r\nok": "100% | ok",
    "again\nagain\nlast": "again | last",
    "null\x00byte \u202eevil": "null byte evil",
    f"kubeadm join --token {TOKEN}": "kubeadm join --token [hidden]",
    "abcdef.\x1b[0m0123456789abcdef": "[hidden]",
    "-----BEGIN EC PRIVATE KEY-----\nMHc\nAoG\n-----END EC PRIVATE KEY-----\nlogin:": "[hidden] | login:",
    "Authorization: Bearer 0123456789": "Authorization: Bearer [hidden]",
}


@pytest.mark.parametrize(("console", "said"), TOLD.items())
def test_what_is_quoted(console: str, said: str) -> None:
    assert last_lines(console) == said


@given(st.text(max_size=2000), st.integers(0, 4))
@example("\x1b]" + "x" * 2000, 0)
@example("\x1b[" + "1;" * 3000, 0)
def test_any_console_gives_one_bounded_line_without_a_token(text: str, times: int) -> None:
    said = last_lines("\n".join([text, *[TOKEN] * times, text]))
    assert len(said) <= LONGEST
    assert said.isprintable()
    assert TOKEN not in said


def test_the_end_is_what_is_kept() -> None:
    lines = [f"line {number}" for number in range(1000)]
    assert last_lines("\n".join(lines)).split(" | ") == lines[-MOST_LINES:]
    long = last_lines("x" * 10_000 + "the end")
    assert long.startswith("…")
    assert long.endswith("the end")


def test_a_secret_of_which_only_the_end_is_looked_at_is_not_shown() -> None:
    """The cut may go through it, and lines that repeat themselves may bring what is left of it to the front."""
    for left in range(1, len(TOKEN) + 1):
        rest = "a\n" * 8191
        assert last_lines(f"{TOKEN}{' ' * (16384 - len(rest) - left)}{rest}")[-1:] == "a"
        assert last_lines(f"{TOKEN}{' ' * (16384 - len(rest) - left)}{rest}") in {"a", "[hidden] | a"}
    assert last_lines("9sdfAoGBAL\nMHcCAQ\n-----END RSA PRIVATE KEY-----\nlogin:") == "[hidden] | login:"

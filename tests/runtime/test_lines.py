"""Lines out of chunks, wherever they are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodewright.runtime.kube.lines import LineSplitter, LineTooLongError


@given(lines=st.lists(st.binary().filter(lambda b: b"\n" not in b and b.strip())), cuts=st.lists(st.integers(0, 200)))
def test_however_the_stream_is_cut_the_lines_come_out_whole(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter, found = LineSplitter(), []
    for start, end in pairwise(edges):
        found.extend(splitter.feed(stream[start:end]))
    assert found == lines


def test_a_line_without_an_end_is_not_kept_without_a_bound() -> None:
    splitter = LineSplitter(longest=100)
    splitter.feed(b"x" * 100)
    with pytest.raises(LineTooLongError):
        splitter.feed(b"x")

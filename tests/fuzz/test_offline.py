"""The readers of files and the judge of the webhook: a finding or a refusal for every input, never an exception."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import sys
from pathlib import Path

import orjson
import pytest

from api.validate import validate
from nodewright.cli.commands.validate import check_text
from nodewright.cli.main import run
from nodewright.cli.manifests.checks import Checker
from nodewright.cli.manifests.rewriting import rewrite
from nodewright.gateways.admission.review import BadReviewError, review_text
from tests.fuzz.driving import drive, sizes
from tests.fuzz.inputs import as_json, document, mutant
from tests.gateways.test_review import REGISTRY, asked, good


@sizes(640, 12_000)
async def test_objects_are_validated(count: int) -> None:
    async def act(rng: random.Random) -> None:
        obj = mutant(rng)
        list(validate(obj if isinstance(obj, dict) else {"kind": "Machine", "spec": obj}, creating=rng.random() < 0.5))

    await drive(count, act)


@sizes(600, 12_000)
async def test_files_are_checked_and_converted(count: int) -> None:
    checker = Checker()

    async def act(rng: random.Random) -> None:
        text = document(rng).decode("utf-8", "replace")
        check_text(checker, "file", text)
        rewrite("file", text, rng.choice(("providerConfig", "providerSpec")))

    await drive(count, act)


@sizes(150, 3_000)
async def test_the_commands_end_with_an_exit_code(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "manifest.yaml"

    async def act(rng: random.Random) -> None:
        file.write_bytes(document(rng))
        command = rng.choice((["validate"], ["validate", "-o", "json"], ["convert"]))
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        with monkeypatch.context() as patched:
            patched.setenv("NODEWRIGHT_DEBUG", "1")
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            code = run([*command, str(file)])
        assert code in (0, 1, 2)

    await drive(count, act)


@sizes(60, 3_000)
async def test_plan_ends_with_an_exit_code(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEWRIGHT_DEBUG", "1")
    file = tmp_path / "manifest.yaml"

    async def act(rng: random.Random) -> None:
        file.write_bytes(document(rng))
        # The command starts an event loop of its own.
        assert await asyncio.to_thread(run, ["plan", str(file), "-o", "json"]) in (0, 1, 2)

    await drive(count, act, seed=17)


@sizes(650, 12_000)
async def test_reviews_are_answered_or_refused(count: int) -> None:
    async def act(rng: random.Random) -> None:
        body = asked(good())
        body["request"]["object"] = mutant(rng)
        body["request"]["operation"] = rng.choice(("CREATE", "UPDATE"))
        body["request"]["oldObject"] = mutant(rng)
        if rng.random() < 0.3:
            body = mutant(rng, body)
        # As bytes, which is how they come: what no JSON parser takes is refused by the same code as all else.
        with contextlib.suppress(BadReviewError):
            orjson.dumps(review_text(as_json(body), REGISTRY)[1])

    await drive(count, act)

"""The readers of files and the judge of the webhook: a finding or a refusal for every input, never an exception."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from api.validate import validate
from controllers.kernel.refs import CLUSTER, key_of
from nodewright.cli.commands.validate import check_text
from nodewright.cli.comparing.declaration import declaration_of
from nodewright.cli.comparing.differences import differences
from nodewright.cli.comparing.showing import as_data, as_tree
from nodewright.cli.comparing.sides import Side
from nodewright.cli.listing.rows import KINDS, rows
from nodewright.cli.main import run
from nodewright.cli.manifests.checks import Checker
from nodewright.cli.manifests.rewriting import rewrite
from nodewright.cli.upgrading.kubernetes import cluster_of
from nodewright.cli.upgrading.planning import plan_of
from nodewright.cli.upgrading.showing import plan_data
from nodewright.cli.web.whatif import WhatIfError, read
from nodewright.gateways.admission.review import BadReviewError, review_text
from nodewright.reports.tree.drawing import sentences
from tests.fuzz.driving import drive, sizes
from tests.fuzz.inputs import ATOMS, as_json, document, mutant
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


@sizes(120, 6_000)
async def test_declarations_are_compared_and_clusters_listed(count: int) -> None:
    """Objects of another cluster's API are as hostile as files."""

    async def act(rng: random.Random) -> None:
        sides = [[declaration_of(each) for each in _objects(rng)] for _ in range(2)]
        found = differences(*sides)
        titled = [Side(title, tuple(side)) for title, side in zip("ab", sides, strict=True)]
        orjson.dumps(as_data(titled[0], titled[1], found))
        sentences(as_tree(titled[0], titled[1], found), 80)
        world = {kind: [each for each in _objects(rng) if _has_name(each)] for kind in KINDS}
        rows(world)
        for cluster in world[CLUSTER]:
            seen = cluster_of(key_of(cluster), world)
            orjson.dumps(plan_data(plan_of(seen, rng.choice(("", "1.36.3", "soon")))))

    await drive(count, act)


def _objects(rng: random.Random) -> list[dict[str, Any]]:
    """Of JSON types: what no JSON parser takes is refused before."""
    found: list[dict[str, Any]] = []
    for _ in range(rng.randrange(3)):
        with contextlib.suppress(ValueError):
            found.append(orjson.loads(as_json(mutant(rng))))
    return [each for each in found if isinstance(each, dict)]


def _has_name(obj: dict[str, Any]) -> bool:
    """No API server gives one without, nor a namespace that is no text."""
    meta = obj.get("metadata")
    return isinstance(meta, dict) and isinstance(meta.get("name"), str) and isinstance(meta.get("namespace", ""), str)


@sizes(300, 6_000)
async def test_what_if_is_read_or_refused(count: int) -> None:
    pods = {
        "count": 2,
        "cpu": "1",
        "memory": "1Gi",
        "gpu": 1,
        "nodeSelector": "a=b",
        "tolerations": "a=b:NoSchedule",
    }

    async def act(rng: random.Random) -> None:
        body = {**pods, "sizes": {"MachineDeployment/default/pool": 3}}
        for name in rng.sample(sorted(body), 2):
            body[name] = rng.choice((*ATOMS, *({"pool": each} for each in ATOMS)))
        with contextlib.suppress(WhatIfError):
            read(body)

    await drive(count, act)

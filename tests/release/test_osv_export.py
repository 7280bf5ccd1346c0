"""The audit on documents as OSV's export of PyPI has them: by its schema, and by the way it says to evaluate them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from hack.release import audit

PYSEC: dict[str, Any] = {
    "schema_version": "1.7.3",
    "id": "PYSEC-2024-24",
    "modified": "2024-02-05T20:20:47.716944Z",
    "published": "2024-01-29T23:15:00Z",
    "aliases": ["CVE-2024-23334", "GHSA-5h86-8mv2-jq9f"],
    "details": "A static route that\nfollows links leaves its folder.",
    "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N"}],
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "aiohttp", "purl": "pkg:pypi/aiohttp"},
            "ranges": [
                {
                    "type": "GIT",
                    "repo": "https://git.example/aiohttp",
                    "events": [{"introduced": "0"}, {"fixed": "1c335944d6a8b1298baf179b7c0b3069f10c514b"}],
                },
                {"type": "ECOSYSTEM", "events": [{"introduced": "1.0.5"}, {"fixed": "3.9.2"}]},
            ],
            "versions": ["1.0.5", "3.9.1"],
            "database_specific": {"source": "https://git.example/PYSEC-2024-24.yaml"},
        }
    ],
    "references": [{"type": "FIX", "url": "https://git.example/pull/8079"}],
}
"""As PyPA writes them: no summary, commits beside versions."""
NAMES_OTHERS: dict[str, Any] = {
    "id": "GHSA-xxxx-xxxx-xxxx",
    "modified": "2024-02-05T20:20:47Z",
    "aliases": None,
    "severity": None,
    "references": None,
    "summary": "of another ecosystem",
    "affected": [
        {"package": {"ecosystem": "npm", "name": "aiohttp"}, "versions": ["3.9.1"]},
        {"ranges": [{"type": "GIT", "repo": "https://git.example/x", "events": [{"introduced": "0"}]}]},
    ],
}
NAMES_NOBODY: dict[str, Any] = {"id": "MAL-2024-1", "modified": "2024-02-05T20:20:47Z", "affected": None}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """`all.zip`: one document for each advisory, named by its id."""
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for each in (
            PYSEC,
            NAMES_OTHERS,
            NAMES_NOBODY,
            {**PYSEC, "id": "PYSEC-2", "withdrawn": "2024-03-01T00:00:00Z"},
        ):
            archive.writestr(f"{each['id']}.json", json.dumps(each))
    return tmp_path / "all.zip"


def test_the_export_is_read_whole(export: Path) -> None:
    found = audit.findings("aiohttp==3.9.1 \\\n    --hash=sha256:00\n", export)
    assert found == ["aiohttp 3.9.1: PYSEC-2024-24: A static route that follows links leaves its folder."]
    assert audit.findings("aiohttp==3.9.2\n", export) == []


@pytest.mark.parametrize(
    ("events", "affected"),
    [
        ([{"fixed": "2.0"}, {"introduced": "1.0"}], True),
        ([{"introduced": "0"}, {"fixed": "1.0"}, {"introduced": "1.4"}, {"fixed": "1.6"}], True),
        ([{"introduced": "1.4"}, {"introduced": "0"}, {"fixed": "1.6"}, {"fixed": "1.0"}], True),
        ([{"introduced": "0"}, {"last_affected": "1.5"}], True),
        ([{"introduced": "0"}, {"last_affected": "1.4.9"}], False),
        ([{"introduced": "0"}, {"fixed": "1.5"}], False),
        ([{"introduced": "1.5"}], True),
        ([{"introduced": "1.5.1"}], False),
        ([{"introduced": "0"}, {"limit": "1.5"}], False),
        ([{"introduced": "0"}, {"limit": "1.6"}], True),
        ([{"introduced": "0"}, {"limit": "*"}], True),
        ([{"introduced": "0"}, {"fixed": "not a version"}], True),
    ],
)
def test_a_range_is_evaluated_as_the_schema_says(events: list[dict[str, str]], affected: bool) -> None:
    assert audit.is_affected({"ranges": [{"type": "ECOSYSTEM", "events": events}]}, "1.5") is affected


def test_a_version_is_known_however_it_is_written() -> None:
    assert audit.is_affected({"versions": ["2004c", "1.5.0"]}, "1.5")
    assert not audit.is_affected({"versions": ["2004c", "1.5.1"], "ranges": None}, "1.5")

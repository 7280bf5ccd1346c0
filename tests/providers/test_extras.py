"""The command that installs an extra, for each way in which the program was installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from providers.base.extras import install_command

WHEEL = '{"url": "file:///srv/my%20wheels/nodewright-0.1.0-py3-none-any.whl", "archive_info": {}}'
CHECKOUT = '{"url": "file:///src/nodewright", "dir_info": {"editable": true}}'


@pytest.mark.parametrize(
    ("direct_url", "receipt", "command"),
    [
        ("", "", "pip install 'nodewright[ssh]'"),
        (WHEEL, "", "pip install '/srv/my wheels/nodewright-0.1.0-py3-none-any.whl[ssh]'"),
        (CHECKOUT, "", "pip install --editable '/src/nodewright[ssh]'"),
        ('{"url": "file:///src/nodewright", "dir_info": {}}', "", "pip install '/src/nodewright[ssh]'"),
        ("", "uv-receipt.toml", "uv tool install --force 'nodewright[ssh]'"),
        (WHEEL, "uv-receipt.toml", "uv tool install --force '/srv/my wheels/nodewright-0.1.0-py3-none-any.whl[ssh]'"),
        ("", "pipx_metadata.json", "pipx install --force 'nodewright[ssh]'"),
        ('{"url": "https://example.com/x.whl"}', "", "pip install 'nodewright[ssh]'"),
        ("no JSON", "", "pip install 'nodewright[ssh]'"),
        ("[]", "", "pip install 'nodewright[ssh]'"),
    ],
)
def test_the_command_fits_how_the_program_was_installed(
    tmp_path: Path, direct_url: str, receipt: str, command: str
) -> None:
    if receipt:
        (tmp_path / receipt).touch()
    assert install_command("ssh", tmp_path, direct_url) == command


def test_a_checkout_is_named_as_it_is_here() -> None:
    assert install_command("ssh").endswith("[ssh]'")

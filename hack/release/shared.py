"""What a machine's other programs look for beside the program: manual pages and completions for three shells.

They lie in the wheel's data, so that pip, pipx and uv put them to ``share`` of the environment that they make, and in
an archive of their own for packagers.
"""

from __future__ import annotations

from hack.release import manual
from hack.release.tree import Tree, file, to_tar, zipped
from nodewright.cli.main import COMPLETE

_PLACES = {
    "bash": "bash-completion/completions/nodewright",
    "zsh": "zsh/site-functions/_nodewright",
    "fish": "fish/vendor_completions.d/nodewright.fish",
}
_ZSH_FIRST_TIME = '[[ "${zsh_eval_context[-1]}" == loadautofunc ]] && _nodewright_completion "$@"\n'
"""zsh loads the file when Tab is pressed for the first time, and wants an answer then, too."""


def files(version: str, when: int) -> dict[str, bytes]:
    """By their paths below ``share``."""
    return {f"man/man{manual.SECTION}/{name}": text for name, text in manual.pages(version, when).items()} | {
        place: completion(shell).encode() for shell, place in _PLACES.items()
    }


def completion(shell: str) -> str:
    """As ``nodewright completion SHELL`` prints it, for a folder from which the shell loads it by itself."""
    from typer._completion_shared import get_completion_script  # noqa: PLC0415  (no public name)

    script = get_completion_script(prog_name="nodewright", complete_var=COMPLETE, shell=shell).rstrip() + "\n"
    return script + _ZSH_FIRST_TIME if shell == "zsh" else script


def archive(version: str, when: int) -> bytes:
    """``share/…`` as a tar.gz."""
    tree: Tree = {f"share/{path}": file(data) for path, data in files(version, when).items()}
    return zipped(to_tar(tree, when))

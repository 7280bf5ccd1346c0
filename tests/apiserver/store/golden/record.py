"""Play the dialogue to a real kube-apiserver and keep its answers.

    python -m tests.apiserver.store.golden.record KUBECONFIG

The server must take the user for one who may do anything, and needs no controller-manager; the namespace and the custom
kind of the dialogue must not exist yet. `python -m hack.realplane` runs such a one.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from nodewright.apiserver.values import Obj
from tests.apiserver.store.golden.dialogue import Step, play
from tests.apiserver.store.golden.steps_builtin import BUILTIN_STEPS
from tests.apiserver.store.golden.steps_custom import CUSTOM_STEPS, KIND
from tests.differential.speech import Server
from tests.differential.stories_recorded import request_of

ANSWERS = Path(__file__).with_name("answers.json")


class RealApi:
    """A kube-apiserver as an Api."""

    def __init__(self, kubeconfig: Path) -> None:
        self._server = Server(kubeconfig)

    def ask(self, step: Step) -> tuple[int, Obj]:
        answer = self._server.send(request_of(step))
        if step.verb in ("create", "update", "delete") and step.kind == KIND[0]:
            time.sleep(2)  # a changed CustomResourceDefinition is served a moment later
        return answer.status, answer.body


def main() -> None:
    """Record."""
    answers = play(RealApi(Path(sys.argv[1])), [*CUSTOM_STEPS, *BUILTIN_STEPS])
    ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

"""The simulated provider: a verified fake whose hosts drive demos, simulations and tests.

``registration`` is what the entry point names; its clouds are ``WORLDS``, which the program's shell reads to play the
kubelets, and may tell to ``keep_in`` a directory.
"""

from __future__ import annotations

from providers.simulated.provider import registration_for
from providers.simulated.worlds import Worlds

WORLDS = Worlds()
registration = registration_for(WORLDS)

"""etcd's quorum arithmetic: of V voters a majority of V // 2 + 1 has to work (Raft).

| voters | quorum | losses that are borne when all work |
|---|---|---|
| 1 | 1 | 0 |
| 2 | 2 | 0 |
| 3 | 2 | 1 |
| 4 | 3 | 1 |
| 5 | 3 | 2 |
| 6 | 4 | 2 |
| 7 | 4 | 3 |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controllers.controlplane.state import Member


def quorum(voters: int) -> int:
    """Voters that have to work: 2 of 3, 3 of 4, 3 of 5."""
    return voters // 2 + 1


@dataclass(frozen=True, slots=True)
class Votes:
    """``healthy`` of ``voters`` are known to work; a member of which nothing is known does not count."""

    voters: int
    healthy: int

    @property
    def margin(self) -> int:
        """Healthy voters that may still be lost: 1 of 3 healthy ones, 0 with 2 of 3, -1 with 1 of 3 (no quorum)."""
        return self.healthy - quorum(self.voters)

    @property
    def have_quorum(self) -> bool:
        return self.voters > 0 and self.margin >= 0

    def without(self, member: Member) -> Votes:
        """After the removal of ``member``; a learner has no vote. 3 of 3 become 2 of 2, 2 of 3 become 2 of 2 if the
        unhealthy one goes."""
        if not member.is_voter:
            return self
        return Votes(self.voters - 1, self.healthy - (1 if member.works else 0))

    def __str__(self) -> str:
        return f"{self.healthy} of {self.voters} voters are healthy, quorum is {quorum(self.voters)}"


def votes_of(members: Iterable[Member]) -> Votes:
    """Of started members that are no learners. One that was added and never started has a vote unless it is a learner:
    etcd counts it from the moment it is added."""
    voters = [member for member in members if member.is_voter]
    return Votes(len(voters), sum(member.works for member in voters))

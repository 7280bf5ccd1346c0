"""Which Nodes go, because what runs on them fits elsewhere, and which Machines are given up.

The steps are those of the Cluster Autoscaler's ``core/scaledown``:

1. ``eligibility``: which Nodes may go as far as they themselves are concerned.
2. ``planner``: which of them could go together, and since when nobody needs them.
3. ``budgets``: how many of those go now.
4. ``actuation``: what is written so that exactly those go.

A Node goes by a mark on its Machine and one replica less. If the process dies between the two, the next reconcile finds
the mark and finishes the work or takes the mark back: what is marked is never counted twice.
"""

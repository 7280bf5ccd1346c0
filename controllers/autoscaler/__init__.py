"""The autoscaler's decisions: objects ─► Observed ─► Decision. Which Nodes to add, which to give back, why not more.

Not a room yet: nothing runs it. What it decides: ``docs/autoscaler.md``.
"""

"""The autoscaler's decisions: objects ─► Observed ─► Decision, which Nodes to add, which to give back, and why not more.

Not a room yet: nothing runs it. ``docs/tasks/autoscaler.md`` tells what it decides.
"""

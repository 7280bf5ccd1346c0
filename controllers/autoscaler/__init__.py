"""The autoscaler's decisions: objects ─► Observed ─► Decision. Which Nodes to add, which to give back, why not more.

What it decides, and how it is run: ``docs/autoscaler.md``.
"""

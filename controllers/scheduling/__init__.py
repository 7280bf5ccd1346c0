"""Would it fit? Slim nodes and pods, kube-scheduler's predicates, a snapshot with fork and revert, packing, removal.

    core objects ─► shapes ─► classes of equal pods ─► Snapshot ─► filter, estimate, plan_removal

Pure: nothing here reads a clock, an API or a log. What it models and what it leaves out: ``docs/scheduling.md``.
"""

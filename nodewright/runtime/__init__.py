"""The running program's one generic shell: watches in, runs of pure reconcilers, writes and provider calls out.

    reflectors -> cache -> wakes -> queue -> reconcile (needs, observe, plan) -> executor -> API server / hosts

Nothing here decides what should be; that is the reconcilers' (``controllers``) alone.
"""

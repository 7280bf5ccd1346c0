"""The running program's one generic shell: watches in, rounds of pure rooms, writes and provider calls out.

    reflectors -> cache -> wakes -> queue -> round (needs, observe, plan) -> executor -> API server / hosts

Nothing here decides what should be; that is the rooms' (``controllers``) alone.
"""

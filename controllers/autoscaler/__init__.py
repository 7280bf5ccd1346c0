"""Parts of the autoscaler that decide with values: groups and their bounds, expanders, balancing, back-off.

Not a room yet: nothing reads, runs or writes them.
"""

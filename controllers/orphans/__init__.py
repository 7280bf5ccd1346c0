"""Hosts that no Machine knows: left behind by a lost answer, a removed finalizer, a restored backup.

Not a reconciler (there is no object to wake it by): the runtime asks for a sweep now and then.
"""

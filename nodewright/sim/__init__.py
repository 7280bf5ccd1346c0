"""The production reconcilers and the production store on a virtual clock, with bad luck drawn from a seed.

One step at a time, chosen by the seed: a watch event arrives, a reconcile runs, a user edits, a host boots, the process
dies between two actions. After every step the invariants are checked; at the end all must have settled. A failing seed
tells its story.
"""

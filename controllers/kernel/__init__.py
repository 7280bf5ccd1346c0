"""What every reconciler shares: the Plan and its actions, the View it decides on, names, ownership, budgets, order.

    View + provider reads -> observe -> Observed -> plan -> Plan(steps of actions, outcome, notes)

Nothing here performs I/O, reads a clock or throws dice; import-linter holds it so.
"""

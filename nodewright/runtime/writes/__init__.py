"""Plans are carried out: actions, Events and evictions, each with a bound on how fast they may come."""

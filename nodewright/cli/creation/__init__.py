"""A whole cluster by one command: made from files, and taken down again."""

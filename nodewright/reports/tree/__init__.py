"""Objects and their conditions as a tree for people: what is there, what is wrong, what to do."""

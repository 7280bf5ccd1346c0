"""Every reader of untrusted input, given seeded mutations of valid input."""

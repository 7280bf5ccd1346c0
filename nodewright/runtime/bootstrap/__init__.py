"""Bootstrap data at run time: where hosts join, the Secrets with which they do, and what is left of them."""

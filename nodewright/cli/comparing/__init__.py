"""How the declarations of two clusters differ."""

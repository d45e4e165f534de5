"""How events move between processes and from the outside in."""

"""The gate: what a text states, what must not be kept of it, and what becomes of each candidate. All of it pure."""

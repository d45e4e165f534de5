"""Views in SQL: rows that are folded from the log."""

"""How a view is folded from the log, and how views are run, rebuilt and compared."""

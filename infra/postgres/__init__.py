"""PostgreSQL underneath: the log and the views of many processes, and a server of one's own for tests."""

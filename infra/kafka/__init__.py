"""Kafka: connections, topics, and a broker of one's own for tests."""

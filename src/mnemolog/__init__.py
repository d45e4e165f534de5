"""Event-sourced memory for AI agents."""

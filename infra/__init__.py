"""Adapters and entry points: log, keys, views, blobs, importers, command line."""

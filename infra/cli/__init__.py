"""The command line. It starts fast: what a command needs is imported when it runs."""

from mnemolog.infra.cli.app import app, main

__all__ = ["app", "main"]

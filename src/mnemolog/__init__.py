"""Event-sourced memory for AI agents that you can replay, correct, and prove erased.

Begin with `Memory.open(path)` and a `Scope`; docs/python.md shows every method at work.
"""

from mnemolog.aio import AsyncMemory
from mnemolog.domain.erasure import ErasureReceipt
from mnemolog.domain.events import FORGOTTEN, Receipt
from mnemolog.domain.ingress import original
from mnemolog.domain.principal import Principal, Role, Tier
from mnemolog.domain.scope import ANY, Scope
from mnemolog.errors import MnemologError
from mnemolog.memory import Memory
from mnemolog.results import Context, Hit, MemoryRecord

__all__ = [
    "ANY",
    "FORGOTTEN",
    "AsyncMemory",
    "Context",
    "ErasureReceipt",
    "Hit",
    "Memory",
    "MemoryRecord",
    "MnemologError",
    "Principal",
    "Receipt",
    "Role",
    "Scope",
    "Tier",
    "original",
]

"""Event-sourced memory for AI agents that you can replay, correct, and prove erased.

Begin with `Memory.open(path)` and a `Scope`; docs/python.md shows every method at work.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mnemolog.aio import AsyncMemory
    from mnemolog.domain.erasure import ErasureReceipt
    from mnemolog.domain.events import FORGOTTEN, Receipt
    from mnemolog.domain.ingress import original
    from mnemolog.domain.principal import Principal, Role, Tier
    from mnemolog.domain.scope import ANY, Scope
    from mnemolog.errors import MnemologError
    from mnemolog.infra.settings import Settings
    from mnemolog.memory import Memory
    from mnemolog.moving import MoveReceipt, move
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
    "MoveReceipt",
    "Principal",
    "Receipt",
    "Role",
    "Scope",
    "Settings",
    "Tier",
    "move",
    "original",
]

_HOMES: Final = {
    "aio": ("AsyncMemory",),
    "domain.erasure": ("ErasureReceipt",),
    "domain.events": ("FORGOTTEN", "Receipt"),
    "domain.ingress": ("original",),
    "domain.principal": ("Principal", "Role", "Tier"),
    "domain.scope": ("ANY", "Scope"),
    "errors": ("MnemologError",),
    "infra.settings": ("Settings",),
    "memory": ("Memory",),
    "moving": ("MoveReceipt", "move"),
    "results": ("Context", "Hit", "MemoryRecord"),
}
_HOME: Final = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import on first use: the command line and the domain start without the store and its libraries."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    collecting = gc.isenabled()
    gc.disable()  # modules are no garbage: to look through them while they come is a tenth of the start
    try:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        if not gc.get_freeze_count():  # and right after it another tenth: with this they count as old
            gc.freeze()
            gc.unfreeze()
    finally:
        if collecting:
            gc.enable()
    return value


def __dir__() -> list[str]:
    return __all__

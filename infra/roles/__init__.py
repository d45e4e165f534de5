"""The roles that a process can have. Each is imported when it is served: what it needs may be an extra."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Final, cast

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.serving import Opening, Role
from mnemolog.infra.settings import Settings

ROLES: Final[Mapping[str, str]] = {
    "embedder": "mnemolog.infra.roles.embedder:opened",
    "projections": "mnemolog.infra.roles.projections:opened",
    "worker": "mnemolog.infra.roles.worker:opened",
    "relay": "mnemolog.infra.roles.relay:opened",
    "ingest": "mnemolog.infra.roles.ingest:opened",
    "records": "mnemolog.infra.roles.records:opened",
}
"""Name and where it is: a function of the settings that gives a context manager of the role."""


def opening(name: str, settings: Settings) -> Opening:
    """How a role is opened. Raises InvalidInput for one that there is not, or whose extra is not installed."""
    if name not in ROLES:
        raise InvalidInput(f"no role {name!r}: there are {', '.join(ROLES)}")
    module, _, function = ROLES[name].partition(":")
    try:
        opened = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"{name} needs {error.name}: install mnemolog with the extras of this role"
        ) from None
    make = cast(Callable[[Settings], AbstractContextManager[Role]], opened)
    return lambda: make(settings)

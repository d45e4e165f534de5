"""Whether the servers that a role needs can be reached: told once when one is away, and once when it works again."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Final

_CONNECT_SECONDS: Final = 3.0
_EVERY: Final = 5.0
_EVERY_WHILE_AWAY: Final = 1.0
_TICK: Final = 0.5


@dataclass(frozen=True, slots=True)
class Server:
    """What is reached at any of some addresses: host and port, or the path of a socket (port 0)."""

    name: str
    addresses: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.name} at {', '.join(_shown(*each) for each in self.addresses)}"

    def answers(self) -> bool:
        """Whether one of them takes a connection."""
        return any(_takes(*each) for each in self.addresses)


def _shown(host: str, port: int) -> str:
    return f"{host}:{port}" if port else host


def _takes(host: str, port: int) -> bool:
    try:
        if port:
            socket.create_connection((host, port), _CONNECT_SECONDS).close()
        else:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(_CONNECT_SECONDS)
                line.connect(host)
    except OSError:
        return False
    return True


class Watch:
    """Looks again and again, also where nothing is to be done and a role would not notice.

    trouble: what keeps the role from its work, without any text of the store; None while it works.
    """

    def __init__(
        self,
        name: str,
        servers: Sequence[Server],
        trouble: Callable[[], str | None],
        say: Callable[[str], None],
    ) -> None:
        self._name, self._servers, self._trouble, self._say = name, servers, trouble, say
        self._told: set[str] = set()
        self.away: tuple[str, ...] = ()

    def run(self, stop: Event) -> None:
        """Until `stop` is set."""
        waited = _EVERY
        while not stop.wait(_TICK):
            waited += _TICK
            if waited >= (_EVERY_WHILE_AWAY if self._told else _EVERY):
                waited = 0.0
                self.probe()
            self.look()

    def probe(self) -> None:
        """See which servers take connections."""
        self.away = tuple(str(one) for one in self._servers if not one.answers())

    def look(self) -> None:
        """Say what is new."""
        trouble = self._trouble()
        if trouble is not None and not self._told:
            self.probe()  # so that it is told by what is away, where something is
        if new := [one for one in self.away if one not in self._told]:
            self._told |= set(new)
            self._say(f"{self._name}: {' and '.join(new)} cannot be reached: it goes on trying")
        elif trouble is not None and not self._told:
            self._told.add(trouble)
            needs = "".join(f", {one}" for one in self._servers)
            self._say(f"{self._name}: cannot go on ({trouble}{needs}): it goes on trying")
        elif self._told and trouble is None and not self.away:
            self._told.clear()
            self._say(f"{self._name}: working again")

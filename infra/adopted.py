"""The policy that was adopted last, as the log has it. A store whose policy is the default one starts without YAML."""

from __future__ import annotations

from typing import Final, Protocol

from mnemolog.domain.events import PolicyAdopted
from mnemolog.domain.policy import Policy
from mnemolog.projections.ports import Page

_PAGE: Final = 100
_ADOPTIONS: Final = frozenset({PolicyAdopted.topic})


class PolicyLog(Protocol):
    """What the loader needs of the log."""

    def read(self, after: int, limit: int, *, topics: frozenset[str] | None = None) -> Page: ...


def adopted(log: PolicyLog) -> PolicyAdopted | None:
    """The policy document that was adopted last."""
    found, after = None, 0
    while True:
        page = log.read(after, _PAGE, topics=_ADOPTIONS)
        found = next((e.event for e in reversed(page.events) if isinstance(e.event, PolicyAdopted)), found)
        if len(page.events) < _PAGE:
            return found
        after = page.position


def adopted_policy(log: PolicyLog) -> Policy | None:
    """The policy that decides, as its adopted document says."""
    found = adopted(log)
    if found is None:
        return None
    from mnemolog.infra.policies import parse_policy

    return parse_policy(found.document)

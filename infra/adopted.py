"""The policy that was adopted last, as the log has it. A store whose policy is the default one starts without YAML."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from mnemolog.domain.events import PolicyAdopted
from mnemolog.domain.policy import Policy
from mnemolog.projections.ports import Page

_PAGE: Final = 100
_ADOPTIONS: Final = frozenset({PolicyAdopted.topic})


class PolicyLog(Protocol):
    """What the loader needs of the log."""

    def read(self, after: int, limit: int, *, topics: frozenset[str] | None = None) -> Page: ...


class Adopted(NamedTuple):
    """An adoption, and where in the log it stands."""

    event: PolicyAdopted
    position: int


def adopted(log: PolicyLog) -> Adopted | None:
    """The policy document that was adopted last."""
    found: Adopted | None = None
    after = 0
    while True:
        page = log.read(after, _PAGE, topics=_ADOPTIONS)
        for each in page.events:
            if isinstance(each.event, PolicyAdopted):
                found = Adopted(each.event, each.position)
        if len(page.events) < _PAGE:
            return found
        after = page.position


def adopted_policy(log: PolicyLog) -> Policy | None:
    """The policy that decides, as its adopted document says."""
    found = adopted(log)
    if found is None:
        return None
    from mnemolog.infra.policies import parse_policy

    return parse_policy(found.event.document)

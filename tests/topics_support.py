"""Events of several owners, as the relay's tests write them."""

from __future__ import annotations

from dataclasses import replace

from log_support import ALICE, draft
from mnemolog.domain.events import Draft
from mnemolog.domain.scope import Scope, ScopeIds


def turn_of(owner: str, number: int) -> Draft:
    """A turn of this user."""
    scope = ScopeIds(Scope(ALICE.tenant, user=owner))
    return replace(draft(f"turn {number} of {owner}"), scope=scope, stream=owner)

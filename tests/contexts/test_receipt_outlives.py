"""A context that is being made while its session or its person is erased still ends with its receipt."""

from collections.abc import Callable
from typing import Any

import pytest

from face_world import ACME, U1
from mnemolog import Memory
from mnemolog.domain.events import ContextAssembled


@pytest.mark.parametrize("target", [{"session": "s-1"}, {"subject": "u-1"}])
def test_a_receipt_outlives_what_it_was_for(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, target: dict[str, str]
) -> None:
    """The reader gets a context and no error; the receipt is in the log, where the erased person is not."""
    memory.record_turn(U1, role="user", content="hello zebra")
    contexts = memory._contexts
    receipt: Callable[..., Any] = contexts._receipt
    person = memory._store.vault.resolve(U1, create=False)
    assert person is not None

    def erased_meanwhile(*args: Any) -> Any:
        ids = memory._guard.noting_ids(U1)
        monkeypatch.setattr(memory._guard, "noting_ids", lambda scope: ids)
        memory.erase(ACME if "subject" in target else U1, **target).apply()  # type: ignore[arg-type]
        return receipt(*args)

    monkeypatch.setattr(contexts, "_receipt", erased_meanwhile)
    made = memory.context(U1, "zebra", budget=500)
    (noted,) = memory.log(limit=1_000, topics=[ContextAssembled.topic])
    assert noted.envelope.id == made.receipt.event_id
    assert noted.envelope.scope.session is None
    assert (noted.envelope.scope.user == person.user) == ("session" in target)

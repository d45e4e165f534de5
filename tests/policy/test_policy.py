"""The policy document: checked with lines, adopted as an event, and every field acts."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from face_world import U1, open_memory
from mnemolog import Memory
from mnemolog.domain.policy import DEFAULT, ContextPolicy, Floors, Policy, Shares
from mnemolog.domain.summaries import WindowRule
from mnemolog.errors import InvalidInput
from mnemolog.infra.policies import DEFAULT_DOCUMENT, parse_policy, policy_document
from summaries_world import current, talk, worker, written
from support import ROOT

SHARES = {"boot": 7.5, "tools": 5.0, "memory": 10.0, "session": 40.0, "input": 20.0, "reserve": 17.5}


def document(section: str, **values: float) -> str:
    name = section.partition(".")[2]
    lines = [f"    {key}: {value}" for key, value in values.items()]
    if not name:
        return "\n".join(["version: 1", f"{section}:", *lines])
    return "\n".join(["version: 1", "context:", f"  {name}:", *lines])


def shares(**values: float) -> str:
    """All six, with what one gains taken from `reserve` (or from `session`)."""
    made = SHARES | values
    rest = "session" if "reserve" in values else "reserve"
    made[rest] += 100 - sum(made.values())
    return document("context.shares", **made)


def fill(memory: Memory) -> None:
    """More of everything than any budget here holds."""
    for at in range(60):
        memory.remember(U1, f"Rule {at} {'on and on ' * 12}", kind="constraint")
        memory.remember(U1, f"Fact {at} {'on and on ' * 12}")
        memory.remember(U1, f"Look {at} up {'on and on ' * 12}", kind="reference")
        memory.record_turn(U1, role="user", content=f"Turn {at} {'on and on ' * 12}")


def spent(memory: Memory, **asked: int) -> dict[str, int]:
    """Tokens by group."""
    receipt = memory.context(U1, "nothing alike", **asked).receipt  # type: ignore[arg-type]
    groups = {"boot": "boot", "reference": "tools", "memory": "memory", "recalled": "memory"}
    found: dict[str, int] = {}
    for entry in receipt.entries:
        group = groups.get(entry["layer"], "session")
        found[group] = found.get(group, 0) + entry["tokens"]
    return found


def test_the_shipped_document_is_the_default() -> None:
    """The default document says what decides without one, and a document says the same as what it was made from."""
    assert parse_policy(DEFAULT_DOCUMENT) == DEFAULT == parse_policy("version: 1")
    assert parse_policy(policy_document(DEFAULT)) == DEFAULT
    assert DEFAULT_DOCUMENT in (ROOT / "docs" / "policy.md").read_text()


def test_the_hash_is_of_what_is_decided() -> None:
    """Spelling, order and comments change no hash; a value does."""
    one = parse_policy("version: 1\nsummaries: {keep: 3, step: 5}")
    other = parse_policy("# so\nsummaries:\n  step: 5\n  keep: 3\nversion: 1\n")
    assert one.hash == other.hash != parse_policy("version: 1").hash
    assert parse_policy("version: 1\ncontext: {floors: {boot: 10.0}}").hash == DEFAULT.hash


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: a policy is a mapping"),
        ("- 1", "line 1: a policy is a mapping"),
        ("version: 1\ncontext: [", "line 2"),
        ("version: 2", "line 1: version:"),
        ("context: {}", "line 1: version: Field required"),
        ("version: 1\nsummaries:\n  keep: 3\n  keep: 4", "line 4: keep is given twice"),
        ("version: 1\n\nsummary:\n  keep: 3", "line 3: summary: there is no such field"),
        ("version: 1\nsummaries:\n  step: 0", "line 3: summaries.step: Input should be greater"),
        ("version: 1\nsummaries:\n  step: '5'", "line 3: summaries.step: Input should be a valid integer"),
        ("version: 1\nsummaries:\n  keep: true", "line 3: summaries.keep: Input should be a valid integer"),
        (
            "version: 1\ncontext:\n  shares:\n    boot: 50",
            "line 3: context.shares: the six shares must add up",
        ),
        (
            "version: 1\ncontext:\n  floors:\n    boot: 90",
            "line 3: context.floors: the floors must not add up",
        ),
        ("version: 1\ncontext:\n  floors:\n    boot: .nan", "line 4: context.floors.boot"),
        ("version: 1\na: &a [1]\nb: *a", "a policy has no aliases"),
        ("version: 1\n!!python/object:os.system x: 1", "line 2"),
        ("version: 1\n? [a, b]\n: 1", "line 2"),
        ("version: 1 #" + "x" * 70_000, "at most 65536 characters"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, said: str) -> None:
    """What is no policy is refused, and the error says where and what."""
    with pytest.raises(InvalidInput) as error:
        parse_policy(text)
    assert said in str(error.value)


def test_several_mistakes_are_told_at_once() -> None:
    """Each mistake has its line, in the order of the document."""
    with pytest.raises(InvalidInput, match=r"^line 3: .*; line 4: .*$"):
        parse_policy("version: 1\nsummaries:\n  keep: -1\n  step: x")


@pytest.mark.parametrize("field", ["boot", "tools", "memory", "session"])
def test_a_share_acts(memory: Memory, field: str) -> None:
    """A layer with a larger share gets more of a full context."""
    fill(memory)
    before = spent(memory, budget=3_000)
    value = 80.0 if field == "session" else 30.0
    base = SHARES | {"input": 0.0, "reserve": 0.0, field: value}
    others = [name for name in ("boot", "tools", "memory", "session") if name != field]
    base |= {name: (100 - value) / len(others) for name in others}
    memory.operations.adopt_policy(document("context.shares", **base))
    assert spent(memory, budget=3_000)[field] > before[field]


@pytest.mark.parametrize("field", ["input", "reserve"])
def test_what_lies_outside_leaves_less_of_a_window(memory: Memory, field: str) -> None:
    """A larger share for input or reserve makes the context of the same window smaller."""
    fill(memory)
    before = memory.context(U1, "x", window=4_000).receipt
    assert before.budget == 2_500
    made = SHARES | {field: SHARES[field] + 20, "session": 20.0}
    memory.operations.adopt_policy(document("context.shares", **made))
    assert memory.context(U1, "x", window=4_000).receipt.budget == 1_700


@pytest.mark.parametrize("field", ["boot", "tools", "memory", "session"])
def test_a_floor_acts(memory: Memory, field: str) -> None:
    """With a floor a layer's one large entry stays in a full context; without it, it goes."""
    fill(memory)
    large = "large " * 400
    kinds = {"boot": "constraint", "tools": "reference", "memory": "fact"}
    if field == "session":
        large_id = memory.record_turn(U1, role="user", content=large).event_id
    else:
        soon = "2100-01-01T00:00:00Z"
        large_id = memory.remember(U1, large, kind=kinds[field], occurred_at=soon).record_id
    even = dict.fromkeys(("boot", "tools", "memory", "session"), 25.0) | {"input": 0.0, "reserve": 0.0}

    def is_in(floor: float) -> bool:
        floors = dict.fromkeys(("boot", "tools", "memory", "session"), 0.0) | {field: floor}
        text = (
            document("context.shares", **even) + document("context.floors", **floors).partition("context:")[2]
        )
        memory.operations.adopt_policy(text)
        receipt = memory.context(U1, "nothing alike", budget=1_000).receipt
        return large_id in {entry["id"] for entry in receipt.entries}

    assert is_in(60.0)
    assert not is_in(0.0)


@pytest.mark.parametrize(("field", "quiet", "eager"), [("keep", 12, 1), ("step", 20, 3), ("growth", 1, 100)])
def test_the_cadence_of_summaries_acts(memory: Memory, field: str, quiet: int, eager: int) -> None:
    """How many turns stay raw, and when the next summary is due, follow the adopted document at once."""
    base = {"keep": 2, "step": 2, "growth": 8} | {field: quiet}
    memory.operations.adopt_policy(document("summaries", **base))
    for _ in range(2):
        talk(memory, U1, *(f"Word {at} of the harbour" for at in range(12)))
        worker(memory, rule=memory.operations.policy().summaries).run_once()
        memory._store.summarising.run_once()
    few = written(memory), getattr(current(memory, U1), "last", 0)
    memory.operations.adopt_policy(document("summaries", **(base | {field: eager})))
    talk(memory, U1, "one more", "and an answer", "another", "and one more")
    memory._store.summarising.run_once()
    assert (written(memory), getattr(current(memory, U1), "last", 0)) > few


def test_raw_turns_that_always_stay(memory: Memory) -> None:
    """`keep` is also how many turns a context shows raw although a summary covers them."""
    talk(memory, U1, *(f"Word {at} of the harbour" for at in range(40)))
    memory.close_session(U1)
    memory._store.summarising.run_once()
    seen = {}
    for keep in (2, 9):
        memory.operations.adopt_policy(document("summaries", keep=keep))
        receipt = memory.context(U1, "zzz", budget=3_000, layers=["session"]).receipt
        seen[keep] = sum(entry["layer"] == "recent" for entry in receipt.entries)
    assert seen == {2: 2, 9: 9}


def test_every_field_is_tested_here() -> None:
    """A field that nobody has shown to act is not part of the policy."""
    elsewhere = {"gate", "reading", "on_withdrawal"}
    """Shown by tests/gate/test_policy_fields.py."""
    assert {f.name for f in fields(Policy)} == {"context", "summaries"} | elsewhere
    assert {f.name for f in fields(ContextPolicy)} == {"shares", "floors"}
    assert {f.name for f in fields(Shares)} == set(SHARES)
    assert {f.name for f in fields(Floors)} == {"boot", "tools", "memory", "session"}
    assert {f.name for f in fields(WindowRule)} == {"keep", "step", "growth"}


def test_an_adoption_is_an_event_and_holds_after_opening_again(tmp_path: Path) -> None:
    """The log keeps the document, its hash and the one before; the last one decides when the memory is opened."""
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nsummaries:\n  keep: 5\n")
    with open_memory(tmp_path / "data") as memory:
        memory.operations.adopt_policy(file)
        memory.operations.adopt_policy("version: 1\nsummaries:\n  keep: 6\n")
        with pytest.raises(InvalidInput):
            memory.operations.adopt_policy("version: 1\nsummaries:\n  keep: x\n")
    with open_memory(tmp_path / "data") as memory:
        policy = memory.operations.policy()
        assert policy.summaries.keep == memory._store.summarising.rule.keep == 6
        one, two = memory.log(topics={"PolicyAdopted"})
        assert one.envelope.clear["previous"] == DEFAULT.hash
        assert two.envelope.clear == {"policy": policy.hash, "previous": one.envelope.clear["policy"]}
        assert memory.operations.policy_document() == "version: 1\nsummaries:\n  keep: 6\n"


def test_the_policy_that_decides_already_is_not_adopted_again(memory: Memory) -> None:
    """The same document adds no event and gives its first receipt; other words or values are an adoption."""
    text = "version: 1\nmemory: {kinds: [fact]}  # 사실만\n"
    first = memory.operations.adopt_policy(text)
    head, live = memory.operations.status().head, memory.operations.projections()
    again = memory.operations.adopt_policy(text)
    assert again == replace(first, duplicate=True)
    assert (memory.operations.status().head, memory.operations.projections()) == (head, live)
    memory.operations.adopt_policy("version: 1\nmemory: {kinds: [fact]}\n")
    memory.operations.adopt_policy("version: 1")
    assert not memory.operations.adopt_policy(text).duplicate
    assert len(memory.log(topics={"PolicyAdopted"})) == 4

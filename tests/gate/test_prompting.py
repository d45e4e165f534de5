"""What of a model's answer counts: nothing but what stands in its source."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat_world import claim
from gate_world import said
from mnemolog.domain.gate.candidates import Candidate, Source
from mnemolog.domain.gate.extraction import MOST
from mnemolog.domain.gate.prompting import NAMED, RELATIONS, SCHEMA, Unusable, checked, messages
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import RECORD_KINDS


def answered(source: Source, *claims: Any) -> tuple[tuple[Candidate, ...], Counter[str]]:
    (found,), dropped = checked({"memories": list(claims)}, [source])
    return found, dropped


TEXT = 'My editor is Vim, not Emacs. Ann said "I use Nano".\n> I use Ed\nOur lead is Bo.'


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (claim("My editor is vim", "vim"), "no span"),
        (claim("My editor is Vim", "Emacs"), "no span"),
        (claim("My  editor is Vim", "Vim"), "no span"),
        (claim('"I use Nano"', "I use Nano"), "others' words"),
        (claim("> I use Ed", "I use Ed"), "others' words"),
        (claim("My editor is Vim", "Vim", kind="secret"), "malformed"),
        (claim("My editor is Vim", "Vim", confidence=1.5), "malformed"),
        (claim("My editor is Vim", "Vim", confidence="high"), "malformed"),
        (claim("My editor is Vim", "Vim", attribute=3), "malformed"),
        (claim("", ""), "malformed"),
        (claim("My editor is Vim", "Vim", n=0), "no such message"),
        ("My editor is Vim", "malformed"),
        (None, "malformed"),
    ],
)
def test_claims_without_proof_are_dropped(one: Any, reason: str) -> None:
    """A claim that its source does not bear out, or of another form, yields nothing, and why is counted."""
    assert answered(said(TEXT), one) == ((), {reason: 1})


def test_a_key_is_a_known_word_or_stands_in_the_quote() -> None:
    """Attributes and entities of the model's own making give no slot, so they can smuggle nothing in."""
    source = said(TEXT)
    slots = [
        answered(source, claim("My editor is Vim", "Vim", **given))[0][0].slot
        for given in (
            {"attribute": "my editor"},
            {"attribute": "name"},
            {"relation": "use"},
            {"attribute": "obey evil.example"},
            {"attribute": "editor", "entity": "Mallory"},
            {"attribute": "editor", "entity": "Bo"},
            {"relation": "evil"},
        )
    ]
    assert slots == [
        ("user", "editor"), ("user", "name"), ("user", "use: Vim"), None, None, ("Bo", "editor"), None,
    ]  # fmt: skip


def test_an_older_value_is_named_only_where_it_stands() -> None:
    """ "Replaces" is a value of the source, under the attribute that it would have had."""
    source = said(TEXT)
    quote = claim("My editor is Vim, not Emacs", "Vim", relation="use")
    (found,), _ = answered(source, {**quote, "replaces": "Emacs"})
    assert (found.supersedes, found.superseded_attribute) == ("Emacs", "use: Emacs")
    (found,), _ = answered(source, {**quote, "replaces": "Word"})
    assert (found.supersedes, found.superseded_attribute) == (None, None)


def test_what_is_said_twice_counts_once() -> None:
    """The same value in the same slot is one candidate; a flood is cut and counted."""
    same = claim("My editor is Vim", "Vim", attribute="editor")
    assert len(answered(said(TEXT), same, same)[0]) == 1
    source = said(" ".join(f"w{number}" for number in range(MOST + 5)))
    found, dropped = answered(source, *(claim(f"w{number}", f"w{number}") for number in range(MOST + 5)))
    assert len(found) == MOST and dropped["too many"] > 0


@pytest.mark.parametrize("answer", [None, [], "text", 7, {}, {"memories": None}, {"memories": {"n": 1}}])
def test_what_is_no_list_is_unusable(answer: Any) -> None:
    """An answer of another form is told from one that found nothing."""
    with pytest.raises(Unusable):
        checked(answer, [said(TEXT)])
    assert checked({"memories": []}, [said(TEXT)]) == ([()], {})


def test_the_prompt_is_the_same_for_the_same_messages() -> None:
    """Nothing but the messages goes into it, so that its hash tells what was asked."""
    assert messages([said(TEXT)]) == messages([said(TEXT)])
    assert json.loads(messages([said(TEXT)])[1]["content"].split("\n")[1])["text"] == TEXT
    item = SCHEMA["properties"]["memories"]["items"]
    assert set(item["required"]) == set(item["properties"]) == set(claim("a", "a"))


WORDS = [
    "My editor",
    "Vim",
    "not Emacs",
    "Ann",
    "evil.example",
    "obey",
    "user",
    "team",
    "name",
    "use",
    "",
    "말",
    "\x00",
]
PIECE = st.one_of(
    st.sampled_from(WORDS), st.integers(0, len(TEXT)).map(lambda at: TEXT[at : at + 9]), st.none()
)
CLAIM = st.fixed_dictionaries(
    dict.fromkeys(("quote", "value", "entity", "attribute", "relation", "replaces", "time"), PIECE)
    | {
        "n": st.integers(0, 3),
        "kind": st.sampled_from([*RECORD_KINDS, "evil"]),
        "confidence": st.floats(0, 1),
    }
)
ANY = st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=9), st.lists, max_leaves=5)


@settings(max_examples=300, deadline=None)
@given(st.lists(CLAIM | ANY, max_size=6), st.sampled_from(["user", "tool", "assistant", "system"]))
def test_no_word_comes_from_the_model(claims: list[Any], role: str) -> None:
    """Whatever a model answers, every text of a candidate stands in its source or is one of a few closed words."""
    source = said(TEXT, role=role, tier=Tier.UNTRUSTED_TOOL)
    found, _ = answered(source, *claims)
    for one in found:
        assert role != "system"
        assert TEXT[slice(*one.span)] == one.content
        assert TEXT[slice(*one.value_span)] == one.value
        assert one.entity in ("user", "team") or one.entity in TEXT
        assert one.supersedes is None or one.supersedes in TEXT
        for attribute in (one.attribute, one.superseded_attribute):
            relation, _, value = (attribute or "").partition(": ")
            known = attribute is None or attribute in NAMED or attribute.casefold() in TEXT.casefold()
            assert known or (relation in RELATIONS and value in TEXT)

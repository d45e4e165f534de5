"""Whatever the wording: what an untrusted origin says is not admitted unless a person says so."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.domain.gate.admission import (
    DEFAULT_ADMISSION,
    AdmissionPolicy,
    Decision,
    SourceFacts,
    admit,
)
from mnemolog.domain.gate.candidates import Candidate
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import RECORD_KINDS

UNTRUSTED = st.sampled_from([Tier.UNTRUSTED_TOOL, Tier.IMPORT])
PHRASES = [
    "The port is 8080",
    "저는 부산에 살아요",
    "My name is Ann",
    "Ignore this",
    "앞으로는 존댓말로 답해 줘",
    "사실",
]
TEXT = st.one_of(st.text(min_size=1, max_size=60), st.sampled_from(PHRASES))


@st.composite
def candidates(draw: st.DrawFn) -> tuple[Candidate, str]:
    """Any statement, as sure and explicit as a model may claim, at any place of any text."""
    before, content, after = draw(st.text(max_size=9)), draw(TEXT), draw(st.text(max_size=9))
    span = len(before), len(before) + len(content)
    attribute = draw(st.none() | st.sampled_from(["name", "home", "liking: tea"]))
    found = Candidate(
        draw(st.sampled_from(RECORD_KINDS)), content, span, content, span, draw(st.sampled_from(["user", "team"])),
        attribute, negated=draw(st.booleans()), confidence=draw(st.floats(0, 1)), rule="model",
        explicit=draw(st.booleans()),
    )  # fmt: skip
    return found, before + content + after


@settings(max_examples=300, deadline=None)
@given(candidates(), UNTRUSTED)
def test_nothing_untrusted_is_admitted(made: tuple[Candidate, str], low: Tier) -> None:
    """Held or dropped, whatever it says."""
    one, text = made
    outcome = admit(one, SourceFacts(text, "tool", low), DEFAULT_ADMISSION)
    assert outcome.trust <= Tier.UNTRUSTED_TOOL
    assert outcome.decision >= Decision.QUARANTINE


def test_without_the_floor_it_would_be() -> None:
    """The same statement gets in where a policy asks for no trust, so it is the floor that holds."""
    text = "The port is 8080"
    one = Candidate(
        "fact",
        text,
        (0, len(text)),
        "8080",
        (12, 16),
        "team",
        "port",
        negated=False,
        confidence=1.0,
        rule="x",
    )
    source = SourceFacts(text, "tool", Tier.UNTRUSTED_TOOL)
    open_gate = AdmissionPolicy(floors=dict.fromkeys(RECORD_KINDS, Tier.IMPORT))
    assert admit(one, source, open_gate).decision is Decision.ADMIT
    assert admit(one, source, DEFAULT_ADMISSION).decision is Decision.QUARANTINE

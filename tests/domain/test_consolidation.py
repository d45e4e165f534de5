"""Which records are proposed for merging, and which are left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mnemolog.domain import consolidation
from mnemolog.domain.consolidation import SPELLING, WORDING, Proposal, proposals
from mnemolog.domain.normalise import slot_key, statement_key
from mnemolog.domain.records import Record, Status


def record(number: int, content: str, slot: tuple[str, str] | None = None, **given: object) -> Record:
    form = statement_key(content)
    group = f"t{form}" if slot is None else f"s{slot_key(*slot)}"
    entity, attribute = slot or (None, None)
    fixed = {"subjects": ("u",), "entity": entity, "attribute": attribute, "order_us": number}
    return Record(
        f"r{number}",
        1,
        Status.CURRENT,
        1,
        number,
        content=content,
        form=form,
        group=group,
        **{**fixed, **given},  # type: ignore[arg-type]
    )


def reason(one: Record, other: Record, cosine: float = 0.0) -> str | None:
    found = proposals([one, other], {("r1", "r2"): cosine})
    return found[0].reason if found else None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Reports go out as Excel", "The report goes out as Excel"),
        ("The user prefers short answers", "I prefer short answers."),
        ("답변은 짧게 해 주세요", "답변을 짧게 해 주세요"),
        ("우리는 배포를 금요일에 합니다", "배포는 금요일에 합니다"),
    ],
)
def test_the_same_words_with_other_endings_are_proposed(one: str, other: str) -> None:
    """Fillers, particles and endings make no other statement; the later record would stay."""
    assert proposals([record(1, one), record(2, other)]) == [Proposal("r1", "r2", WORDING)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We deploy on Fridays", "We deploy on Mondays"),
        ("배포는 금요일에 합니다", "배포는 월요일에 합니다"),
        ("The limit is 300 requests", "The limit is 500 requests"),
        ("Dana leads the billing team", "Omar leads the billing team"),
        ("I eat raw fish", "I do not eat raw fish"),
        ("저는 생선회를 먹어요", "저는 생선회를 안 먹어요"),
        ("tea", "teas"),
    ],
)
def test_what_plainly_differs_is_left_alone(one: str, other: str) -> None:
    """However near it is in meaning: days, numbers, names and denials; and bare values say too little."""
    assert reason(record(1, one), record(2, other), cosine=0.99) is None


def test_near_in_meaning_is_proposed() -> None:
    """Other words of the same meaning, as an embedder sees it; without one they are not known."""
    one, other = record(1, "I prefer short answers"), record(2, "Brief replies suit me best")
    assert reason(one, other) is None
    assert reason(one, other, cosine=0.85) == WORDING


@pytest.mark.parametrize(
    ("slot", "slot_too", "values", "expected"),
    [
        (("user", "home city"), ("user", "home_city"), ("Daejeon", "Busan"), SPELLING),
        (("Billing API", "owner"), ("billing-api", "owners"), ("Dana", "Omar"), SPELLING),
        (("user", "favourite colour"), ("user", "favorite colour"), ("blue", "Blue"), SPELLING),
        (("user", "favourite colour"), ("user", "favorite colour"), ("blue", "red"), None),
        (("user", "phone 1"), ("user", "phone 2"), ("555", "555"), None),
        (("user", "home"), ("user", "birthplace"), ("Busan", "Busan"), None),
        (("Kim Minsu sales", "desk"), ("Kim Minsu legal", "desk"), ("4F window", "4F window"), None),
    ],
)
def test_slots_in_two_spellings(
    slot: tuple[str, str], slot_too: tuple[str, str], values: tuple[str, str], expected: str | None
) -> None:
    """Separators, case and plural make no other slot; a name spelled otherwise does, unless the value is the same."""
    assert reason(record(1, values[0], slot), record(2, values[1], slot_too)) == expected


def test_what_cannot_be_one_record_is_not_proposed() -> None:
    """Another scope, other people, another kind, what does not stand, and what a person kept apart."""
    one, other = record(1, "Reports go out as Excel"), record(2, "The reports go out as Excel")
    assert reason(one, other) == WORDING
    for changed in (
        replace(other, scope=2),
        replace(other, subjects=("v",)),
        replace(other, kind="constraint"),
        replace(other, status=Status.CONTESTED),
        replace(other, status=Status.RETRACTED),
        replace(other, apart=("r1",)),
    ):
        assert reason(one, changed) is None
    assert reason(replace(one, apart=("r2",)), other) is None


def test_the_one_with_more_authority_stays_whatever_the_order() -> None:
    """What a person decided outlives a later double; the answer does not depend on the order of the records."""
    one = record(1, "Reports go out as Excel", ruled=True)
    other, third = record(2, "The reports go out as Excel"), record(3, "Our reports go out as Excel")
    expected = [Proposal("r2", "r1", WORDING), Proposal("r3", "r1", WORDING)]
    assert proposals([one, other, third]) == proposals([third, one, other]) == expected


def test_a_long_text_is_no_statement_to_compare() -> None:
    """What has thousands of characters is proposed by its slot only, whatever its likeness."""
    long = "alpha beta " * 300
    assert reason(record(1, long), record(2, f"the {long}"), cosine=0.99) is None
    assert reason(record(1, long, ("user", "notes")), record(2, "short", ("user", "note"))) == SPELLING
    short = "alpha beta " * 100
    assert reason(record(1, short), record(2, f"the {short}")) == WORDING


def test_a_text_is_looked_through_once_however_many_it_is_compared_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its words, numbers and names are the same for every pair."""
    looked: list[str] = []

    def said(text: str) -> object:
        looked.append(text)
        return known(text)

    known = consolidation._said
    monkeypatch.setattr(consolidation, "_said", said)
    texts = [f"Reports of team {at} go out as Excel" for at in range(20)]
    proposals([record(at, text) for at, text in enumerate(texts)])
    assert looked == texts

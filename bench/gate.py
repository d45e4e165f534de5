"""How good the gate is, on public data and on the authored sets: numbers beside goals, and controls that must fail.

    python bench/gate.py [personal] [extraction] [instructions] [consolidation] [keyed] [free] [updates] [write]
                         [benign] [minja]

`personal` compares with presidio's pattern recognisers in the same run where presidio-analyzer is installed. The exit
code is 1 where a goal is missed or a control does not fail.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import _gate_memory
from _corpora import shared_data
from _gate_texts import ROOT, Public, authored, changing
from _goals import Goals, percent, shown

from mnemolog.domain.gate.candidates import Source
from mnemolog.domain.gate.credentials import credentials
from mnemolog.domain.gate.extraction import extract
from mnemolog.domain.gate.findings import Finding, Scanner, scan
from mnemolog.domain.gate.identifiers import identifiers
from mnemolog.domain.gate.instructions import instructions
from mnemolog.domain.gate.mood import states
from mnemolog.domain.principal import Tier

OURS: Final = (identifiers, credentials)
Places = set[tuple[str, int, int]]
Finder = Callable[[str], Places]
SORTS: Final = {
    "CREDIT_CARD": "card", "PHONE_NUMBER": "phone", "EMAIL_ADDRESS": "email", "IBAN_CODE": "iban", "US_SSN": "ssn",
    "US_DRIVER_LICENSE": "licence",
}  # fmt: skip
"""Presidio's names of what both look for."""


# Personal data ------------------------------------------------------------------------------------------------------


def personal(data: Path, goals: Goals) -> None:
    """Recall and precision per sort, by overlap with the labelled span, on presidio dev and on the Korean lines."""
    rows = json.loads((data / "pii" / "presidio_dev.json").read_text(encoding="utf-8"))
    gold = [{place for span in row["spans"] if (place := _labelled(span)) is not None} for row in rows]
    finders: dict[str, Finder] = {"ours": _ours(OURS)}
    if (presidio := _presidio()) is not None:
        finders["presidio"] = presidio
    compared = "" if presidio is not None else "; presidio-analyzer is not installed: no comparison"
    goals.part(f"presidio dev, {len(rows)} texts: found / right of what was found, in per cent{compared}")
    found = {name: [find(row["full_text"]) for row in rows] for name, find in finders.items()}
    for sort in sorted(set(SORTS.values())):
        told = [f"{name} {_rates(gold, each, sort)}" for name, each in found.items()]
        print(f"  {'':7}{sort:8} {', '.join(told)}")
    _korean(goals, finders)


def _labelled(span: dict[str, Any]) -> tuple[str, int, int] | None:
    sort = SORTS.get(span["entity_type"])
    return None if sort is None else (sort, span["start_position"], span["end_position"])


def _ours(scanners: Sequence[Scanner]) -> Finder:
    def find(text: str) -> Places:
        found: Iterable[Finding] = scan(text, scanners)
        return {(one.sort.value, one.start, one.end) for one in found}

    return find


def _presidio() -> Finder | None:
    """Presidio's own pattern recognisers with their default settings, without its language model."""
    try:
        from presidio_analyzer import predefined_recognizers as own
    except ImportError:
        return None
    import tldextract

    tldextract.extract = tldextract.TLDExtract(
        suffix_list_urls=()
    )  # the list that it ships, not one that it fetches
    names = {
        "CreditCard": "card", "Phone": "phone", "Email": "email", "Iban": "iban", "UsSsn": "ssn",
        "UsLicense": "licence", "KrRrn": "resident", "KrFrn": "resident", "KrBrn": "business", "KrPassport": "passport",
        "KrDriverLicense": "licence",
    }  # fmt: skip
    known = {name: f"{name}Recognizer" for name in names}
    recognisers = [
        (getattr(own, known[name])(), sort) for name, sort in names.items() if hasattr(own, known[name])
    ]

    def find(text: str) -> Places:
        places: Places = set()
        for recogniser, sort in recognisers:
            found = recogniser.analyze(text, recogniser.supported_entities, None)
            places |= {(sort, one.start, one.end) for one in found or () if one.score >= 0.4}
        return places

    return find


def _rates(gold: Sequence[Places], found: Sequence[Places], sort: str) -> str:
    hits = right = wanted = claimed = 0
    for want, got in zip(gold, found, strict=True):
        mine = {one for one in want if one[0] == sort}
        theirs = {one for one in got if one[0] == sort}
        wanted, claimed = wanted + len(mine), claimed + len(theirs)
        hits += sum(any(_overlap(one, other) for other in theirs) for one in mine)
        right += sum(any(_overlap(one, other) for other in mine) for one in theirs)
    return f"{shown(percent(hits, wanted))} / {shown(percent(right, claimed))} of {wanted}"


def _overlap(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one[1] < other[2] and other[1] < one[2]


def _digits(text: str) -> Places:
    """A careless finder: whatever has six digits."""
    return {("any", *each.span()) for each in re.finditer(r"\d(?:[-. ]?\d){5,}", text)}


def _korean(goals: Goals, finders: dict[str, Finder]) -> None:
    some = authored("korean_identifiers")
    goals.part(f"Korean identifiers, {len(some)} authored lines")
    recall, wrong = _found_in(some, finders["ours"])
    goals.line("found, per cent", recall, least=95, control=("no rules", _found_in(some, _ours(()))[0]))
    goals.line(
        "look-alikes found, per cent", wrong, most=2, control=("any six digits", _found_in(some, _digits)[1])
    )
    if "presidio" in finders:
        recall, wrong = _found_in(some, finders["presidio"])
        goals.line("presidio: found, per cent", recall)
        goals.line("presidio: look-alikes found, per cent", wrong)


def _found_in(some: Sequence[dict[str, Any]], find: Finder) -> tuple[float | None, float | None]:
    """Share of the labelled values found exactly, and of the lines without any in which something is found."""
    wanted = hits = clean = wrong = 0
    for line in some:
        got = {(sort, line["text"][start:end]) for sort, start, end in find(line["text"])}
        want = {(span["type"], span["value"]) for span in line["spans"]}
        wanted, hits = wanted + len(want), hits + len(want & got)
        clean, wrong = clean + (not want), wrong + (not want and bool(got))
    return percent(hits, wanted), percent(wrong, clean)


# Extraction ---------------------------------------------------------------------------------------------------------


def extraction(_: Path, goals: Goals) -> None:
    """Precision and recall on the authored utterances. The control takes every utterance for a fact."""
    sys.path.insert(0, str(ROOT / "tests"))
    from gate_world import held_out, score, utterances

    every = (*utterances(), *held_out())
    empty = sum(not one.expect for one in every)
    goals.part(
        f"Extraction by rules, {len(every)} authored utterances, {empty} with nothing to keep, in per cent"
    )
    for name in ("all", "unseen", "held out", "en", "ko"):
        some = [one for one in every if name in (one.split, one.lang, "all")]
        if not some:
            continue
        result = score(some)
        wanted = sum(len(one.expect) for one in some)
        right = sum(one.text.rstrip(".") == each["value"] for one in some for each in one.expect)
        control = "every utterance a fact"
        goals.line(
            f"{name}: precision", 100 * result.precision, least=95, of=result.right + result.wrong,
            control=(control, percent(right, len(some))),
        )  # fmt: skip
        goals.line(
            f"{name}: recall",
            100 * result.recall,
            least=80,
            of=wanted,
            control=(control, percent(right, wanted)),
        )


# Instructions --------------------------------------------------------------------------------------------------------


def instruct(data: Path, goals: Goals) -> None:
    """Which texts are known to instruct, and which sentences to state nothing. The control asks for a word."""
    public = Public(data)
    goals.part("Texts that instruct whoever reads them: known, in per cent")
    groups = [*public.attacks(), *public.minja_texts()]
    own = authored("instructions")
    for split in ("first", "later", "unseen"):
        groups.append(
            (f"authored, {split}", [one["text"] for one in own if one["instructs"] and one["split"] == split])
        )
    for name, texts in groups:
        goals.line(name, _share(texts, lambda text: bool(instructions(text))), of=len(texts))
    goals.part("Ordinary texts taken for such, in per cent")
    ordinary = [text for _, texts in public.benign() for text in texts]
    ordinary += [*public.korquad(), *(one["text"] for one in own if not one["instructs"])]
    goals.line("held", _share(ordinary, lambda text: bool(instructions(text))), most=2, of=len(ordinary))
    _orders(goals)


def _orders(goals: Goals) -> None:
    goals.part("Authored orders in new words, and statements, in per cent")
    for split in sorted({one["split"] for one in authored("orders")}):
        some = [one for one in authored("orders") if one["split"] == split]
        orders = [one["text"] for one in some if not one["states"]]
        statements = [one["text"] for one in some if one["states"]]
        goals.line(
            f"{split}: orders known by shape of attack",
            _share(orders, lambda text: bool(instructions(text))),
            of=len(orders),
        )
        goals.line(
            f"{split}: orders known to state nothing",
            _share(orders, lambda text: not states(text)),
            of=len(orders),
        )
        goals.line(
            f"{split}: statements taken for orders",
            _share(statements, lambda text: not states(text)),
            of=len(statements),
        )


def _share(texts: Sequence[str], holds: Callable[[str], bool]) -> float | None:
    return percent(sum(map(holds, texts)), len(texts))


# Facts that change ---------------------------------------------------------------------------------------------------


def consolidation(data: Path, goals: Goals) -> None:
    """FactConsolidation as free text: which statements the rules see to be about the same thing as an earlier one.

    Right is what has the same words up to the object. The control takes statements with the same first three words.
    """
    given, at = changing(data), datetime(2026, 3, 4, 15, tzinfo=UTC)
    found = [extract(Source(fact, "tool", Tier.TRUSTED_TOOL, at, UTC)) for fact in given.facts]
    goals.part(
        f"FactConsolidation dev by the rules alone: {sum(map(bool, found))} of {len(given.facts)} facts found"
    )
    truth = _pairs(given.keys)
    told = _pairs([each[0].slot if each else None for each in found])
    naive = _pairs([" ".join(fact.split()[:3]) for fact in given.facts])
    control = "the same first three words"
    goals.line("supersessions: precision", percent(len(told & truth), len(told)), of=len(told))
    goals.line("supersessions: recall", percent(len(told & truth), len(truth)), of=len(truth))
    goals.line(f"precision of {control}", percent(len(naive & truth), len(naive)), of=len(naive))
    goals.line(f"recall of {control}", percent(len(naive & truth), len(truth)), of=len(truth))


def _pairs(keys: Sequence[Any]) -> set[tuple[int, int]]:
    """(earlier, later) of equal keys, neighbours in time only."""
    last: dict[Any, int] = {}
    pairs = set()
    for number, key in enumerate(keys):
        if key is not None and key in last:
            pairs.add((last[key], number))
        if key is not None:
            last[key] = number
    return pairs


PARTS: Final[dict[str, Callable[[Path, Goals], None]]] = {
    "personal": personal,
    "extraction": extraction,
    "instructions": instruct,
    "consolidation": consolidation,
    "keyed": _gate_memory.keyed,
    "free": _gate_memory.free,
    "updates": _gate_memory.updates,
    "write": _gate_memory.write_gate,
    "benign": _gate_memory.benign,
    "minja": _gate_memory.minja,
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parts", nargs="*", help=", ".join(PARTS))
    options.add_argument("--data", type=Path, default=shared_data())
    asked = options.parse_args()
    goals = Goals()
    for name in asked.parts or PARTS:
        PARTS[name](asked.data, goals)
    sys.exit(goals.end())


if __name__ == "__main__":
    main()

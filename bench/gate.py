"""How good the gate is, on public data and on the authored sets, each beside a control that must fail.

    python bench/gate.py [personal] [extraction] [instructions] [admission] [consolidation]

`personal` compares with presidio's pattern recognisers in the same run where presidio-analyzer is installed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

from _corpora import shared_data

from mnemolog.domain.gate.admission import (
    DEFAULT_ADMISSION,
    AdmissionPolicy,
    Decision,
    SourceFacts,
    admit,
    examine,
)
from mnemolog.domain.gate.candidates import Candidate, Source
from mnemolog.domain.gate.credentials import credentials
from mnemolog.domain.gate.extraction import extract
from mnemolog.domain.gate.findings import Finding, Scanner, scan
from mnemolog.domain.gate.identifiers import identifiers
from mnemolog.domain.gate.instructions import instructions
from mnemolog.domain.gate.sentences import sentences
from mnemolog.domain.principal import Tier
from mnemolog.domain.records import RECORD_KINDS

ROOT: Final = Path(__file__).parents[1]
OURS: Final = (identifiers, credentials)
AUTHORED: Final = ROOT / "tests/gate/instructions.jsonl"
Places = set[tuple[str, int, int]]
SORTS: Final = {
    "CREDIT_CARD": "card", "PHONE_NUMBER": "phone", "EMAIL_ADDRESS": "email", "IBAN_CODE": "iban", "US_SSN": "ssn",
    "US_DRIVER_LICENSE": "licence",
}  # fmt: skip
"""Presidio's names of what both look for."""


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:5.1f}" if whole else "    -"


# Personal data ------------------------------------------------------------------------------------------------------


def personal(data: Path) -> None:
    """Recall and precision per sort, by overlap with the labelled span, on presidio dev and on the Korean lines."""
    rows = json.loads((data / "pii" / "presidio_dev.json").read_text(encoding="utf-8"))
    texts = [row["full_text"] for row in rows]
    gold = [{place for span in row["spans"] if (place := _labelled(span)) is not None} for row in rows]
    print(f"presidio dev, {len(rows)} texts: found / right of what was found, in per cent")
    finders: dict[str, Callable[[str], Places]] = {"ours": _ours(OURS), "control: no rules": _ours(())}
    if (presidio := _presidio()) is not None:
        finders["presidio patterns"] = presidio
    else:
        print("presidio-analyzer is not installed: no comparison")
    for name, find in finders.items():
        print(name)
        _table(gold, [find(text) for text in texts], sorted(set(SORTS.values())))
    korean = _lines(ROOT / "tests/gate/korean_identifiers.jsonl")
    print(f"Korean lines, {len(korean)}")
    for name, find in finders.items():
        _korean(name, korean, find)


def _labelled(span: dict[str, Any]) -> tuple[str, int, int] | None:
    sort = SORTS.get(span["entity_type"])
    return None if sort is None else (sort, span["start_position"], span["end_position"])


def _ours(scanners: Sequence[Scanner]) -> Callable[[str], Places]:
    def find(text: str) -> Places:
        found: Iterable[Finding] = scan(text, scanners)
        return {(one.sort.value, one.start, one.end) for one in found}

    return find


def _presidio() -> Callable[[str], Places] | None:
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


def _table(gold: Sequence[Places], found: Sequence[Places], sorts: Sequence[str]) -> None:
    for sort in sorts:
        hits = right = wanted = claimed = 0
        for want, got in zip(gold, found, strict=True):
            mine = {one for one in want if one[0] == sort}
            theirs = {one for one in got if one[0] == sort}
            wanted, claimed = wanted + len(mine), claimed + len(theirs)
            hits += sum(any(_overlap(one, other) for other in theirs) for one in mine)
            right += sum(any(_overlap(one, other) for other in mine) for one in theirs)
        print(f"  {sort:10} {wanted:4} recall {percent(hits, wanted)}  precision {percent(right, claimed)}")


def _overlap(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one[1] < other[2] and other[1] < one[2]


def _korean(name: str, lines: Sequence[dict[str, Any]], find: Callable[[str], Places]) -> None:
    wanted = hits = clean = wrong = 0
    missed: Counter[str] = Counter()
    for line in lines:
        got = {(sort, line["text"][start:end]) for sort, start, end in find(line["text"])}
        want = {(span["type"], span["value"]) for span in line["spans"]}
        wanted, hits = wanted + len(want), hits + len(want & got)
        missed.update(sort for sort, _ in want - got)
        clean, wrong = clean + (not want), wrong + (not want and bool(got))
    print(
        f"  {name:18} recall {percent(hits, wanted)} of {wanted}, look-alikes found {percent(wrong, clean)} of {clean}"
        f"{'; missed ' + str(dict(missed)) if missed else ''}"
    )


# Instructions --------------------------------------------------------------------------------------------------------


def instruct(data: Path) -> None:
    """What is held of texts that instruct, and of ordinary ones. The control asks for the word "instructions"."""
    print("held, in per cent: ours / control")
    for name, texts in chain(_attacks(data), _ordinary(data)):
        ours = sum(bool(instructions(text)) for text in texts)
        control = sum("instruction" in text.casefold() or "지시" in text for text in texts)
        print(f"  {name:34} {len(texts):5} {percent(ours, len(texts))} / {percent(control, len(texts))}")


def _attacks(data: Path) -> Iterator[tuple[str, list[str]]]:
    bastion = _lines(data / "attacks" / "bastion_dev.jsonl")
    yield "bastion malicious", [one["text"] for one in bastion if one["label"] == "malicious"]
    mails = [one["context"] for one in _lines(data / "attacks" / "bipia_email_train.jsonl")]
    attacks = json.loads((data / "attacks" / "bipia_text_attack_train.json").read_text("utf-8"))
    for at, (kind, texts) in enumerate(attacks.items()):
        yield f"BIPIA {kind}", [f"{mails[(7 * n + at) % len(mails)]}\n{text}" for n, text in enumerate(texts)]
    minja = json.loads((data / "attacks" / "minja_dev.json").read_text("utf-8"))
    for prompt in minja["indication_prompts"]:
        ((name, text),) = prompt.items()
        yield f"MINJA {name}", [text.format(**victim) for victim in minja["victim_target"]]
    for split in ("first", "later", "unseen"):
        some = [one["text"] for one in _lines(AUTHORED) if one["instructs"] and one["split"] == split]
        yield f"authored, {split}", some


def _ordinary(data: Path) -> Iterator[tuple[str, list[str]]]:
    yield (
        "bastion benign",
        [one["text"] for one in _lines(data / "attacks" / "bastion_dev.jsonl") if one["label"] == "benign"],
    )
    yield "BIPIA mails", [one["context"] for one in _lines(data / "attacks" / "bipia_email_train.jsonl")]
    with gzip.open(data / "transcripts" / "tau_bench_airline.json.gz", "rt", encoding="utf-8") as file:
        runs = json.load(file)
    yield (
        "tau-bench tool outputs",
        [turn["content"] for run in runs for turn in run["traj"] if turn["role"] == "tool"],
    )
    korquad = json.loads((data / "korean" / "KorQuAD_v1.0_dev.json").read_text("utf-8"))["data"]
    yield "KorQuAD paragraphs", [part["context"] for article in korquad for part in article["paragraphs"]]
    yield "authored", [one["text"] for one in _lines(AUTHORED) if not one["instructs"]]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


# Admission -----------------------------------------------------------------------------------------------------------


def admission(data: Path) -> None:
    """Who gets in: attacks and ordinary outputs of tools, judged as if everything in them had been extracted.

    Each sentence is a candidate, as a careless model would make it. The control has no floors and asks for no shape.
    """
    open_gate = AdmissionPolicy(floors=dict.fromkeys(RECORD_KINDS, Tier.IMPORT), instructs_below=Tier.IMPORT)
    policies = {"gate": DEFAULT_ADMISSION, "control: open": open_gate}
    print("texts of which something is admitted, in per cent")
    for name, policy in policies.items():
        for tier in (Tier.UNTRUSTED_TOOL, Tier.TRUSTED_TOOL):
            attacks = [text for _, texts in _attacks(data) for text in texts]
            ordinary = [text for _, texts in _ordinary(data) for text in texts]
            let_in, wrongly = (
                sum(_admitted(each, tier, policy) for each in some) for some in (attacks, ordinary)
            )
            print(
                f"  {name:14} {tier.name.lower():15} attacks {percent(let_in, len(attacks))} of {len(attacks)},"
                f" ordinary {percent(wrongly, len(ordinary))} of {len(ordinary)}"
            )
    facts = _lines(ROOT / "tests/gate/tool_facts.jsonl")
    found = [_kept(fact) for fact in facts]
    print(
        f"facts of trusted tools, found by rules and admitted: {percent(sum(found), len(found))} of {len(found)}"
    )


def _facts(text: str, tier: Tier) -> SourceFacts:
    findings, signs = examine(text, OURS)
    return SourceFacts(text, "tool", tier, "tool:bench", findings, signs)


def _admitted(text: str, tier: Tier, policy: AdmissionPolicy) -> bool:
    source = _facts(text, tier)
    return any(
        admit(_taken(text, sentence.start, sentence.end), source, policy, ()).decision is Decision.ADMIT
        for sentence in sentences(text)
    )


def _taken(text: str, start: int, end: int) -> Candidate:
    content = text[start:end]
    return Candidate(
        "fact",
        content,
        (start, end),
        content,
        (start, end),
        "team",
        None,
        negated=False,
        confidence=1.0,
        rule="all",
    )


def _kept(fact: dict[str, Any]) -> bool:
    """Whether the fact itself is found in the output and admitted, and nothing else is."""
    output, at = fact["output"], datetime(2026, 3, 4, 15, tzinfo=UTC)
    source = _facts(output, Tier.TRUSTED_TOOL)
    found = extract(Source(output, "tool", Tier.TRUSTED_TOOL, at, UTC))
    told = [each for each in found if admit(each, source, DEFAULT_ADMISSION, ()).decision is Decision.ADMIT]
    return len(told) == 1 and told[0].content in fact["fact"]


# Facts that change ---------------------------------------------------------------------------------------------------


def consolidation(data: Path) -> None:
    """FactConsolidation as free text: which statements the rules see to be about the same thing as an earlier one.

    Right is what has the same words up to the object. The control takes statements with the same first three words.
    """
    context = json.loads((data / "factconsolidation" / "dev.json").read_text("utf-8"))[0]["context"]
    facts = [match[1] for line in context.splitlines() if (match := re.match(r"\d+\. (.+)", line))]
    at = datetime(2026, 3, 4, 15, tzinfo=UTC)
    found = [extract(Source(fact, "tool", Tier.TRUSTED_TOOL, at, UTC)) for fact in facts]
    slots = [each[0].slot if each else None for each in found]
    print(f"FactConsolidation dev, {len(facts)} facts, {sum(map(bool, found))} of them found")
    truth = _pairs([_before_object(fact) for fact in facts])
    for name, keys in (("ours", slots), ("control", [" ".join(fact.split()[:3]) for fact in facts])):
        told = _pairs(keys)
        print(
            f"  {name:8} supersessions: precision {percent(len(told & truth), len(told))}"
            f" recall {percent(len(told & truth), len(truth))} of {len(truth)}"
        )


_OBJECT: Final = re.compile(
    r".*?\b(?:is|was|died|plays|speaks|works?|worked|lives)\b(?: (?:located|born|founded|created|written|married|"
    r"a citizen|famous|associated|affiliated|employed|performed|developed|educated))?(?: (?:in|of|by|to|for|with))?"
    r"(?: the \w+ of)?(?= \S)"
)


def _before_object(fact: str) -> str:
    """The fact up to its object, told by the verbs of this data set alone."""
    found = _OBJECT.match(fact.replace(" was educated is", " WAS educated is"))
    return found[0] if found is not None else fact


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


# Extraction ---------------------------------------------------------------------------------------------------------


def extraction(_: Path) -> None:
    """Precision and recall on the authored utterances. The control takes every sentence for a fact."""
    sys.path.insert(0, str(ROOT / "tests"))
    from gate_world import score, utterances

    every = utterances()
    print(f"authored utterances, {len(every)}, {sum(not one.expect for one in every)} with nothing to keep")
    for name in ("seen", "unseen", "later", "en", "ko", "all"):
        some = [one for one in every if name in (one.split, one.lang, "all")]
        result = score(some)
        print(
            f"  {name:7} {len(some):4} precision {100 * result.precision:5.1f} recall {100 * result.recall:5.1f}"
            f" ({result.right} right, {result.wrong} wrong, {result.missed} missed)"
        )
    wanted = sum(len(one.expect) for one in every)
    right = sum(one.text.rstrip(".") == each["value"] for one in every for each in one.expect)
    print(
        f"  control: every utterance a fact: precision {percent(right, len(every))} recall {percent(right, wanted)}"
    )


PARTS: Final[dict[str, Callable[[Path], None]]] = {
    "personal": personal,
    "extraction": extraction,
    "instructions": instruct,
    "admission": admission,
    "consolidation": consolidation,
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("parts", nargs="*", help=", ".join(PARTS))
    options.add_argument("--data", type=Path, default=shared_data())
    asked = options.parse_args()
    for name in asked.parts or PARTS:
        PARTS[name](asked.data)


if __name__ == "__main__":
    main()

"""The form of a policy document, field by field, and the policy that it means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mnemolog.domain.gate.admission import AdmissionPolicy, Topic
from mnemolog.domain.gate.findings import IDENTIFIERS, Sort
from mnemolog.domain.policy import (
    DEFAULT,
    ContextPolicy,
    Floors,
    GatePolicy,
    Policy,
    ReadingPolicy,
    Shares,
    SystemOfRecord,
    plain,
)
from mnemolog.domain.principal import Role, Tier
from mnemolog.domain.records import RECORD_KINDS
from mnemolog.domain.summaries import WindowRule

Kind = Literal["fact", "preference", "episode", "procedure", "constraint", "reference"]
TierName = Literal[
    "import",
    "untrusted_tool",
    "trusted_tool",
    "agent",
    "user_inferred",
    "user_stated",
    "operator",
    "system_of_record",
]
RoleName = Literal["agent", "user", "operator", "auditor", "service"]
_Percent = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Words = Annotated[list[_Name], Field(min_length=1, max_length=1_000)]
_ADMISSION: Final = DEFAULT.gate.admission


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Shares(_Part):
    boot: _Percent = DEFAULT.context.shares.boot
    tools: _Percent = DEFAULT.context.shares.tools
    memory: _Percent = DEFAULT.context.shares.memory
    session: _Percent = DEFAULT.context.shares.session
    input: _Percent = DEFAULT.context.shares.input
    reserve: _Percent = DEFAULT.context.shares.reserve

    @model_validator(mode="after")
    def _add_up(self) -> Self:
        total = sum(self.model_dump().values())
        if abs(total - 100) > 1e-6:
            raise ValueError(f"the six shares must add up to 100, not {total:g}")
        if not self.boot + self.tools + self.memory + self.session:
            raise ValueError("boot, tools, memory and session leave nothing for a context")
        return self


class _Floors(_Part):
    boot: _Percent = DEFAULT.context.floors.boot
    tools: _Percent = DEFAULT.context.floors.tools
    memory: _Percent = DEFAULT.context.floors.memory
    session: _Percent = DEFAULT.context.floors.session

    @model_validator(mode="after")
    def _fit(self) -> Self:
        total = sum(self.model_dump().values())
        if total > 100:
            raise ValueError(f"the floors must not add up to more than 100, as {total:g} does")
        return self


class _Context(_Part):
    shares: _Shares = _Shares()
    floors: _Floors = _Floors()


class _Summaries(_Part):
    keep: Annotated[int, Field(ge=0, le=1_000)] = DEFAULT.summaries.keep
    step: Annotated[int, Field(ge=1, le=10_000)] = DEFAULT.summaries.step
    growth: Annotated[int, Field(ge=1, le=1_000)] = DEFAULT.summaries.growth


class _Memory(_Part):
    mode: Literal["full", "window"] = DEFAULT.gate.mode
    kinds: list[Kind] = list(_ADMISSION.floors)  # type: ignore[arg-type]
    extractor: Annotated[str, Field(min_length=1, max_length=100)] = "any"
    least_confidence: Annotated[float, Field(ge=0, le=1)] = _ADMISSION.least_confidence
    confirm: list[Kind] = []
    confirm_explicit: bool = _ADMISSION.confirm_explicit
    expiry: dict[Kind, Annotated[float, Field(gt=0, le=36_500)]] = {}
    contested_within: Annotated[float, Field(ge=0, le=525_600)] = DEFAULT.gate.contested_within


class _Ceilings(_Part):
    user: TierName = plain(DEFAULT.gate.ceilings["user"])
    assistant: TierName = plain(DEFAULT.gate.ceilings["assistant"])
    tool: TierName = plain(DEFAULT.gate.ceilings["tool"])


class _Trust(_Part):
    floors: dict[Kind, TierName] = {}
    ceilings: _Ceilings = _Ceilings()
    tools: dict[_Name, Literal["import", "untrusted_tool", "trusted_tool", "system_of_record"]] = {}
    instructs_below: TierName = plain(_ADMISSION.instructs_below)


class _Burst(_Part):
    factor: Annotated[float, Field(ge=1, le=1_000)] = _ADMISSION.burst_factor
    least: Annotated[int, Field(ge=1, le=1_000_000)] = _ADMISSION.burst_least


class _Topic(_Part):
    rule: Literal["allowed", "conditional", "forbidden"]
    words: _Words


_Handling = Literal["keep", "redact", "block"]


class _Personal(_Part):
    secret: Literal["redact", "block"] = _ADMISSION.secrets
    resident: _Handling = "redact"
    card: _Handling = "redact"
    iban: _Handling = "redact"
    account: _Handling = "redact"
    business: _Handling = "redact"
    ssn: _Handling = "redact"
    passport: _Handling = "redact"
    licence: _Handling = "redact"
    phone: _Handling = "redact"
    email: _Handling = "redact"


class _Consent(_Part):
    on_withdrawal: Literal["stop", "erase"] = DEFAULT.on_withdrawal


class _Reading(_Part):
    kinds: dict[RoleName, list[Kind]] = {}
    personal: list[RoleName] = [role.value for role in Role]


class _System(_Part):
    attributes: _Words
    verify: _Name


class Document(_Part):
    """A whole document. What it leaves out is as in the default."""

    version: Annotated[int, Field(ge=1, le=1)]
    memory: _Memory = _Memory()
    trust: _Trust = _Trust()
    burst: _Burst = _Burst()
    topics: dict[_Name, _Topic] = {}
    personal: _Personal = _Personal()
    consent: _Consent = _Consent()
    reading: _Reading = _Reading()
    systems: dict[_Name, _System] = {}
    context: _Context = _Context()
    summaries: _Summaries = _Summaries()


def meant(found: Document) -> Policy:
    """The policy of a valid document."""
    values = found.model_dump()
    context = values["context"]
    return Policy(
        gate=_gate(values),
        reading=_reading(values["reading"]),
        on_withdrawal=values["consent"]["on_withdrawal"],
        context=ContextPolicy(Shares(**context["shares"]), Floors(**context["floors"])),
        summaries=WindowRule(**values["summaries"]),
    )


def _gate(values: Mapping[str, Any]) -> GatePolicy:
    memory, trust = values["memory"], values["trust"]
    systems = {
        name: SystemOfRecord(tuple(one["attributes"]), one["verify"])
        for name, one in values["systems"].items()
    }
    return GatePolicy(
        mode=memory["mode"],
        admission=_admission(values),
        ceilings=_tiers(trust["ceilings"]),
        tools=_tiers(trust["tools"]),
        expiry=MappingProxyType(memory["expiry"]),
        systems=MappingProxyType(systems),
        contested_within=memory["contested_within"],
    )


def _admission(values: Mapping[str, Any]) -> AdmissionPolicy:
    memory, trust, personal = values["memory"], values["trust"], dict(values["personal"])
    floors = {**_ADMISSION.floors, **_tiers(trust["floors"])}
    secrets = personal.pop("secret")
    topics = {name: Topic(tuple(one["words"]), one["rule"]) for name, one in values["topics"].items()}
    return AdmissionPolicy(
        floors=MappingProxyType({kind: floors[kind] for kind in memory["kinds"]}),
        secrets=secrets,
        # "redact" is what an absent sort means: so equal policies are equal.
        identifiers=MappingProxyType({Sort(n): what for n, what in personal.items() if what != "redact"}),
        instructs_below=_tier(trust["instructs_below"]),
        topics=MappingProxyType(topics),
        confirm=frozenset(memory["confirm"]),
        confirm_explicit=memory["confirm_explicit"],
        least_confidence=memory["least_confidence"],
        extractor=None if memory["extractor"] == "any" else memory["extractor"],
        burst_factor=values["burst"]["factor"],
        burst_least=values["burst"]["least"],
    )


def _reading(values: Mapping[str, Any]) -> ReadingPolicy:
    kinds = {role: frozenset(given) for role, given in values["kinds"].items()}
    everybody = MappingProxyType({**DEFAULT.reading.kinds, **kinds})
    return ReadingPolicy(everybody, frozenset(values["personal"]))


def _readers(reading: ReadingPolicy) -> dict[str, Any]:
    """Roles that read all kinds are not named."""
    kinds = {role: kinds for role, kinds in reading.kinds.items() if kinds != frozenset(RECORD_KINDS)}
    return {"kinds": plain(kinds), "personal": plain(reading.personal)}


def written(policy: Policy) -> dict[str, Any]:
    """The values of a document that says the same as the policy."""
    gate, admission = policy.gate, policy.gate.admission
    given = plain(admission)
    return {
        "version": 1,
        "memory": {
            "mode": gate.mode,
            "kinds": list(admission.floors),
            "extractor": admission.extractor or "any",
            "least_confidence": given["least_confidence"],
            "confirm": given["confirm"],
            "confirm_explicit": admission.confirm_explicit,
            "expiry": plain(gate.expiry),
            "contested_within": plain(gate.contested_within),
        },
        "trust": {
            "floors": given["floors"],
            "ceilings": plain(gate.ceilings),
            "tools": plain(gate.tools),
            "instructs_below": given["instructs_below"],
        },
        "burst": {"factor": given["burst_factor"], "least": given["burst_least"]},
        "topics": given["topics"],
        "personal": {"secret": admission.secrets, **_handlings(admission)},
        "consent": {"on_withdrawal": policy.on_withdrawal},
        "reading": _readers(policy.reading),
        "systems": plain(gate.systems),
        "context": plain(policy.context),
        "summaries": plain(policy.summaries),
    }


def _handlings(admission: AdmissionPolicy) -> dict[str, str]:
    return {s.value: admission.identifiers.get(s, "redact") for s in Sort if s in IDENTIFIERS}


def _tiers(names: Mapping[str, str]) -> Mapping[str, Tier]:
    return MappingProxyType({name: _tier(tier) for name, tier in names.items()})


def _tier(name: str) -> Tier:
    return Tier[name.upper()]

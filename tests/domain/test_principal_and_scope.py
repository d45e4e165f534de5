"""Who sees what, and how far what they bring is trusted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.principal import Action, Principal, Role, Tier, may_see, refusal, tool_tier, turn_tier
from mnemolog.domain.scope import ANY, Scope, owner, sees

VALUES = st.none() | st.sampled_from(["a", "b"])
SCOPES = st.builds(
    Scope, tenant=st.sampled_from(["t", "u"]), user=VALUES, project=VALUES, organization=VALUES, agent=VALUES
)


@given(SCOPES, SCOPES)
def test_encoding_is_unambiguous(one: Scope, other: Scope) -> None:
    """Encoding is unambiguous."""
    assert (one.encode() == other.encode()) == (one == other)


@given(SCOPES, SCOPES)
def test_a_reader_sees_a_record_whose_every_level_equals_its_own(caller: Scope, record: Scope) -> None:
    """A reader sees a record whose every level equals its own."""
    expected = all(getattr(caller, level) == value for level, value in record.present())
    assert sees(caller, record) == expected


def test_any_and_exact_have_defined_meanings() -> None:
    """C05: a record without a project is reached by "any project" and by "global"."""
    free, bound = Scope("t", user="a"), Scope("t", user="a", project="p")
    assert sees(Scope("t", user="a", project=ANY), free) and sees(Scope("t", user="a", project=ANY), bound)
    assert sees(Scope("t", user="a"), free) and not sees(Scope("t", user="a"), bound)
    assert not sees(Scope("t", user="a", project="p"), free, exact={"project"})


def test_a_missing_tenant_is_refused() -> None:
    """C08: there is no shared default."""
    for tenant in ("", " ", None):
        with pytest.raises(InvalidInput):
            Scope(tenant)  # type: ignore[arg-type]


def test_the_owner_is_the_user_else_the_project_else_the_tenant() -> None:
    """The owner is the user else the project else the tenant."""
    assert [owner(s) for s in (Scope("t", user="u", project="p"), Scope("t", project="p"), Scope("t"))] == [
        "u",
        "p",
        "t",
    ]


def test_origin_is_the_lower_of_principal_and_content() -> None:
    """E02: the tier comes from the credential, never from the text."""
    agent = Principal("bot", Role.AGENT, (Scope("t"),), trusted_tools=frozenset({"crm"}))
    low = Principal("feed", Role.SERVICE, (Scope("t"),), highest_tier=Tier.UNTRUSTED_TOOL)
    assert turn_tier(agent, "user") is Tier.USER_STATED
    assert turn_tier(agent, "assistant") is Tier.AGENT
    assert tool_tier(agent, "crm") is Tier.TRUSTED_TOOL
    assert tool_tier(agent, "web") is Tier.UNTRUSTED_TOOL
    assert turn_tier(low, "user") is Tier.UNTRUSTED_TOOL


def test_a_principal_acts_only_in_its_scopes_and_role() -> None:
    """A principal acts only in its scopes and role."""
    user = Principal("min", Role.USER, (Scope("t", user="min"),))
    assert refusal(user, Action.READ, Scope("t", user="min", project="p")) is None
    assert refusal(user, Action.READ, Scope("t", user="dana"))
    assert refusal(user, Action.READ, Scope("t"))
    assert refusal(user, Action.OPERATE, Scope("t", user="min"))
    assert refusal(user, Action.READ, Scope("t", user=ANY)) is None
    assert refusal(user, Action.STATE, Scope("t", user=ANY))
    assert refusal(user, Action.READ, Scope(ANY, user="min"))
    assert may_see(user, Scope("t")) and not may_see(user, Scope("t", user="dana"))


def test_only_the_local_operator_may_go_without_scopes() -> None:
    """Only the local operator may go without scopes."""
    with pytest.raises(InvalidInput, match="needs scopes"):
        Principal("bot", Role.AGENT)

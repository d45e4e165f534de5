"""OpenAI's and Anthropic's message shapes."""

import pytest

from mnemolog.domain.errors import InvalidInput
from mnemolog.domain.messages import Called, Returned, Said, expand


def test_openai_messages_become_turns_calls_and_results() -> None:
    """Openai messages become turns calls and results."""
    items = expand(
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "list", "name": "Min"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c-1", "type": "function", "function": {"name": "ls", "arguments": '{"p": "."}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c-1", "name": "ls", "content": "a.py"},
        ]
    )
    assert items == [
        Said("system", "Be brief."),
        Said("user", "list", "Min"),
        Called("ls", '{"p": "."}', "c-1"),
        Returned("a.py", "c-1", "ls"),
    ]


def test_anthropic_messages_become_the_same_things() -> None:
    """Anthropic messages become the same things."""
    items = expand(
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "읽어 볼게요"},
                    {"type": "tool_use", "id": "t-1", "name": "read", "input": {"경로": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t-1",
                        "is_error": True,
                        "content": [{"type": "text", "text": "없음"}, {"type": "image"}],
                    },
                ],
            },
        ]
    )
    assert items == [
        Said("assistant", "읽어 볼게요"),
        Called("read", '{"경로": "a"}', "t-1"),
        Returned("없음\n[image]", "t-1", None, True),
    ]


@pytest.mark.parametrize(
    "message", [{"content": "x"}, {"role": "robot"}, {"role": "assistant", "tool_calls": [{}]}]
)
def test_another_shape_is_refused_with_its_index(message: dict[str, object]) -> None:
    """Another shape is refused with its index."""
    with pytest.raises(InvalidInput, match=r"role|messages"):
        expand([{"role": "user", "content": "fine"}, message])


def test_a_message_that_is_no_mapping_is_refused() -> None:
    """A message that is no mapping is refused."""
    with pytest.raises(InvalidInput, match=r"messages\[0\]"):
        expand(["hello"])  # type: ignore[list-item]

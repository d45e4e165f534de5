"""Promise 12: every policy field acts. The fields and their cases stand in two files; here, that none is left out."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from mnemolog.infra.policy_schema import Document

TESTS = Path(__file__).parent.parent
ELSEWHERE = {"context": "test_a_share_acts", "summaries": "test_the_cadence_of_summaries_acts"}


def loaded(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, TESTS / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_promise_12_no_field_is_without_a_test() -> None:
    """Each leaf of the schema has a case in one of the two files: a new field fails here until it is shown to act."""
    gate, policy = loaded("gate/test_policy_fields.py"), loaded("policy/test_policy.py")
    every = set(gate.paths(Document)) - {"version"}
    left = {path for path in every - set(gate.CASES) if path.partition(".")[0] not in ELSEWHERE}
    assert left == set()
    assert all(hasattr(policy, name) for name in ELSEWHERE.values())

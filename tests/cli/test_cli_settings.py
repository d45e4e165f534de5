"""Settings come from the environment, and keep secrets to themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from mnemolog.domain.errors import InvalidInput
from mnemolog.infra.settings import Settings

SECRET = "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0ISEhISE="


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"MNEMOLOG_{name.upper()}", raising=False)


def test_defaults_are_the_safe_ones() -> None:
    """Without any variable, what is acknowledged is on disk."""
    settings = Settings.load()
    assert (settings.data, settings.durability, settings.blob_threshold) == (Path("data"), "fsync", 65_536)
    assert settings.root_key is None


def test_environment_sets_and_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable sets a field; a value given in code comes first; an empty variable is none."""
    monkeypatch.setenv("MNEMOLOG_DURABILITY", "os")
    monkeypatch.setenv("MNEMOLOG_BATCH_SIZE", "50")
    monkeypatch.setenv("MNEMOLOG_ROOT_KEY_FILE", "")
    settings = Settings.load(batch_size=7)
    assert (settings.durability, settings.batch_size, settings.root_key_file) == ("os", 7, None)


def test_secrets_are_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The root key is in no text form of the settings, and in no error about them."""
    monkeypatch.setenv("MNEMOLOG_ROOT_KEY", SECRET)
    settings = Settings.load()
    assert settings.root_key is not None
    assert settings.root_key.get_secret_value() == SECRET
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump_json()}"
    monkeypatch.setenv("MNEMOLOG_ROOT_KEY_FILE", "root.key")
    with pytest.raises(InvalidInput) as refused:
        Settings.load()
    assert "not both" in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"), [("DURABILITY", "maybe"), ("BATCH_SIZE", "0"), ("BLOB_THRESHOLD", "-1")]
)
def test_bad_values_name_their_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error names the variable to mend, without repeating its value."""
    monkeypatch.setenv(f"MNEMOLOG_{name}", value)
    with pytest.raises(InvalidInput, match=f"MNEMOLOG_{name}: "):
        Settings.load()


@pytest.mark.parametrize("name", ["DATABASE_URL", "KEYS_URL", "VIEWS_URL", "BLOBS_URL"])
def test_a_url_of_another_kind_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A url that names no such store is an error that shows the variable, and what it should be, not the url."""
    monkeypatch.setenv(f"MNEMOLOG_{name}", "mysql://me:hunter2@host/name")
    with pytest.raises(InvalidInput, match=f"MNEMOLOG_{name}: use ") as refused:
        Settings.load()
    assert "hunter2" not in f"{refused.value!r}"


def test_urls_with_passwords_are_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text form of the settings shows the url of a database, or the key of an API."""
    for name in ("DATABASE_URL", "KEYS_URL", "VIEWS_URL"):
        monkeypatch.setenv(f"MNEMOLOG_{name}", "postgresql://me:hunter2@127.0.0.1/name")
    monkeypatch.setenv("MNEMOLOG_EMBEDDER_KEY", "hunter2")
    settings = Settings.load()
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


def test_other_settings_are_checked_too() -> None:
    """A change of settings is validated as the settings were, and keeps what is not changed."""
    settings = Settings.load(batch_size=7, embedder="none")
    assert settings.having(exact_up_to=5) == Settings.load(batch_size=7, embedder="none", exact_up_to=5)
    with pytest.raises(InvalidInput, match="MNEMOLOG_BATCH_SIZE"):
        settings.having(batch_size=0)

"""The roles of a deployment, as SQL that an administrator reads and runs. It may be repeated, and is after an upgrade.

owner: has the log's tables and changes their layout. writer: what runs memories; appends, reads all, owns the views.
reader: sees the rows of one tenant, whatever it selects. auditor: reads everything, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mnemolog.infra.postgres.connecting import schema_name


@dataclass(frozen=True, slots=True)
class Roles:
    """The names of a deployment's roles, which begin with the log's schema."""

    owner: str
    writer: str
    reader: str
    auditor: str

    @classmethod
    def of(cls, schema: str) -> Roles:
        return cls(*(f"{schema_name(schema)}_{role}" for role in ("owner", "writer", "reader", "auditor")))


def privileges(schema: str = "mnemolog") -> str:
    """The SQL for a log's database, once `mnemolog init` has made the tables. Run it as a superuser."""
    roles = Roles.of(schema)
    names = {"owner": roles.owner, "writer": roles.writer, "reader": roles.reader, "auditor": roles.auditor}
    return _SQL.format(schema=schema, views=f"{schema}_views", **names)


def key_privileges(schema: str = "mnemolog") -> str:
    """The SQL for the database of the keys. Run it as a superuser."""
    return _KEYS.format(keeper=f"{schema_name(schema)}_keeper", keys=f"{schema}_keys")


_CREATE: Final = """
    FOREACH name IN ARRAY ARRAY[{names}] LOOP
        IF to_regrole(name) IS NULL THEN EXECUTE format('CREATE ROLE %I LOGIN', name); END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name);
    END LOOP;
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());"""
_HAND_OVER: Final = """
        EXECUTE format('ALTER SCHEMA %I OWNER TO %I', {place}, '{to}');
        FOR name IN SELECT c.oid::regclass::text FROM pg_class c
            WHERE c.relnamespace = ({place})::regnamespace AND c.relkind = 'r' LOOP
            EXECUTE format('ALTER TABLE %s OWNER TO %I', name, '{to}');
        END LOOP;
        FOR name IN SELECT p.oid::regprocedure::text FROM pg_proc p
            WHERE p.pronamespace = ({place})::regnamespace LOOP
            EXECUTE format('ALTER FUNCTION %s OWNER TO %I', name, '{to}');
        END LOOP;"""
_SQL: Final = (
    """DO $privileges$
DECLARE
    name text;
    place text;
BEGIN"""
    + _CREATE.replace("{names}", "'{owner}', '{writer}', '{reader}', '{auditor}'")
    + """
    EXECUTE format('GRANT CREATE ON DATABASE %I TO %I, %I', current_database(), '{owner}', '{writer}');
    -- What reads for one tenant steps down from writer to reader.
    GRANT {reader} TO {writer};
    IF to_regclass('{schema}.stored_events') IS NOT NULL THEN
        CREATE TABLE IF NOT EXISTS {schema}.places (name varchar PRIMARY KEY, place bytea NOT NULL);"""
    + _HAND_OVER.replace("{place}", "'{schema}'").replace("{to}", "{owner}")
    + """
        ALTER SEQUENCE {schema}.stored_events_positions OWNER TO {owner};
        GRANT USAGE ON SCHEMA {schema} TO {writer}, {reader}, {auditor};
        GRANT SELECT ON {schema}.stored_events, {schema}.layout TO {writer}, {reader}, {auditor};
        GRANT SELECT ON {schema}.marks TO {writer}, {auditor};
        GRANT INSERT ON {schema}.stored_events TO {writer};
        GRANT SELECT, UPDATE ON {schema}.stored_events_positions TO {writer};
        GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.places TO {writer};
        GRANT SELECT ON {schema}.places TO {auditor};
        DROP POLICY IF EXISTS every_tenant ON {schema}.stored_events;
        CREATE POLICY every_tenant ON {schema}.stored_events FOR SELECT TO {auditor}, {writer} USING (true);
        DROP POLICY IF EXISTS append ON {schema}.stored_events;
        CREATE POLICY append ON {schema}.stored_events FOR INSERT TO {writer} WITH CHECK (true);
    END IF;
    IF to_regnamespace('{schema}_vectors') IS NOT NULL THEN"""
    + _HAND_OVER.replace("{place}", "'{schema}_vectors'").replace("{to}", "{writer}")
    + """
    END IF;
    IF to_regclass('{views}.views') IS NOT NULL THEN"""
    + _HAND_OVER.replace("{place}", "'{views}'").replace("{to}", "{writer}")
    + """
        GRANT USAGE ON SCHEMA {views} TO {reader}, {auditor};
        GRANT SELECT ON {views}.views TO {reader}, {auditor};
        FOR place IN SELECT nspname FROM pg_namespace WHERE nspname IN (
            SELECT '{views}_' || v.name || '_' || v.generation FROM {views}.views v) LOOP"""
    + _HAND_OVER.replace("{place}", "place").replace("{to}", "{writer}")
    + """
            PERFORM {views}.wall(place);
        END LOOP;
    END IF;
END
$privileges$;
"""
)
_KEYS: Final = (
    """DO $privileges$
DECLARE
    name text;
BEGIN"""
    + _CREATE.replace("{names}", "'{keeper}'")
    + """
    EXECUTE format('GRANT CREATE ON DATABASE %I TO %I', current_database(), '{keeper}');
    IF to_regnamespace('{keys}') IS NOT NULL THEN"""
    + _HAND_OVER.replace("{place}", "'{keys}'").replace("{to}", "{keeper}")
    + """
    END IF;
END
$privileges$;
"""
)

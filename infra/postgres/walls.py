"""Row-level security by tenant: a second wall behind the scope check, for every role that does not own the tables.

Without the setting `mnemolog.tenant` (a tenant's random id) such a role sees no row; a table that no rule fits is
closed. Owners, and the roles of `privileges` that need all tenants, are not held up, and pay nothing.
"""

from __future__ import annotations

from typing import Final

SETTING: Final = "mnemolog.tenant"
"""`SET LOCAL mnemolog.tenant = '…'` in a transaction: whose rows it sees."""
_MINE: Final = f"current_setting('{SETTING}', true)"


def wall_of_log(table: str) -> list[str]:
    """Statements, which may be repeated, that close the log. A row's tenant stands in the clear envelope of its state.

    It is read by those who are held up and costs an append nothing.
    """
    size = " + ".join(f"(get_byte(substring(state FROM 1 FOR 4), {at}) << {24 - 8 * at})" for at in range(4))
    envelope = f"convert_from(substring(state FROM 5 FOR {size}), 'UTF8')::json"
    return [
        f"CREATE OR REPLACE FUNCTION {table}_tenant(state bytea) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS "
        f"$$SELECT {envelope} -> 'sc' ->> 0$$",
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS own_tenant ON {table}",
        f"CREATE POLICY own_tenant ON {table} FOR SELECT USING ({table}_tenant(state) = {_MINE})",
    ]


def wall_of_views(schema: str, reader: str, auditor: str) -> str:
    """The statement that makes `<schema>.wall(place)`, which closes all tables of the view in the schema `place`.

    A table with a tenant is looked at itself, one with the number of a scope by that, any other by the rows of the
    same view that it belongs to. The two roles are let in where `privileges` let them into this database: one to its
    tenant, the other to all. (Roles are the server's: another database may have made them.)
    """
    return _WALL.format(schema=schema, mine=_MINE.replace("'", "''"), reader=reader, auditor=auditor)


_WALL: Final = """
CREATE OR REPLACE FUNCTION {schema}.wall(place text) RETURNS void LANGUAGE plpgsql AS $wall$
DECLARE
    one record;
    rule text;
BEGIN
    FOR one IN
        SELECT c.oid, c.relname AS name, array_agg(a.attname::text) AS columns
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = place::regnamespace AND c.relkind = 'r' GROUP BY c.oid, c.relname
    LOOP
        rule := CASE
            WHEN one.name = 'checkpoint' THEN 'true'
            WHEN 'tenant' = ANY (one.columns) THEN 'tenant = {mine}'
            WHEN 'scope' = ANY (one.columns) THEN format('scope = ANY (ARRAY(SELECT number FROM %I.scopes))', place)
            ELSE (
                SELECT string_agg(format('EXISTS (SELECT FROM %1$I.%2$I o WHERE o.%3$I = %4$I.%3$I)',
                    place, o.relname, b.attname, one.name), ' OR ' ORDER BY o.relname)
                FROM pg_class o
                JOIN pg_attribute s ON s.attrelid = o.oid AND s.attname = 'scope'
                JOIN pg_attribute b ON b.attrelid = o.oid AND b.attname = (
                    SELECT key FROM unnest(ARRAY['position', 'event_id']) key WHERE key = ANY (one.columns) LIMIT 1)
                WHERE o.relnamespace = place::regnamespace AND o.relkind = 'r')
        END;
        EXECUTE format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY', place, one.name);
        EXECUTE format('DROP POLICY IF EXISTS own_tenant ON %I.%I', place, one.name);
        IF rule IS NOT NULL THEN
            EXECUTE format('CREATE POLICY own_tenant ON %I.%I FOR SELECT USING (%s)', place, one.name, rule);
        END IF;
        EXECUTE format('DROP POLICY IF EXISTS every_tenant ON %I.%I', place, one.name);
        IF EXISTS (SELECT FROM pg_roles
            WHERE rolname = '{auditor}' AND has_schema_privilege(oid, '{schema}', 'USAGE')) THEN
            EXECUTE format('CREATE POLICY every_tenant ON %I.%I FOR SELECT TO {auditor} USING (true)', place, one.name);
        END IF;
    END LOOP;
    FOR one IN SELECT rolname FROM pg_roles
        WHERE rolname IN ('{reader}', '{auditor}') AND has_schema_privilege(oid, '{schema}', 'USAGE') LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', place, one.rolname);
        EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', place, one.rolname);
    END LOOP;
END
$wall$"""

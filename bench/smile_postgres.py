"""Trade-Floor by hand in PostgreSQL: tables with triggers, and a view for the matcher.

What is left of each bid stands in a table with an index by issue and price; triggers keep it. A
commit is durable, as what a broker acknowledges is.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SIDE = """
CREATE TABLE {side}bids ({side}id bigserial PRIMARY KEY, issue text, price bigint, bid bigint);
CREATE TABLE remaining{side}
    ({side}id bigint PRIMARY KEY, issue text, price bigint, {side}remaining bigint);
CREATE INDEX {side}_kind ON remaining{side} (issue, price);
CREATE FUNCTION {side}_came() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO remaining{side} SELECT * FROM added; RETURN NULL; END $$;
CREATE TRIGGER came AFTER INSERT ON {side}bids REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION {side}_came();
"""
_MATCHES = """
CREATE TABLE matches (t bigserial PRIMARY KEY, buyid bigint, sellid bigint, traded bigint);
CREATE FUNCTION matched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE remainingbuy r SET buyremaining = r.buyremaining - m.s
        FROM (SELECT buyid, sum(traded) AS s FROM added GROUP BY buyid) m WHERE r.buyid = m.buyid;
    DELETE FROM remainingbuy WHERE buyid IN (SELECT buyid FROM added) AND buyremaining <= 0;
    UPDATE remainingsell r SET sellremaining = r.sellremaining - m.s
        FROM (SELECT sellid, sum(traded) AS s FROM added GROUP BY sellid) m
        WHERE r.sellid = m.sellid;
    DELETE FROM remainingsell WHERE sellid IN (SELECT sellid FROM added) AND sellremaining <= 0;
    RETURN NULL; END $$;
CREATE TRIGGER matched AFTER INSERT ON matches REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION matched();
CREATE VIEW matchable AS SELECT * FROM remainingbuy JOIN remainingsell USING (issue, price);
"""
SCHEMA = _SIDE.format(side="buy") + _SIDE.format(side="sell") + _MATCHES


def programs() -> Path | None:
    """Where PostgreSQL is, if it is installed."""
    installed = shutil.which("initdb")
    if installed is not None:
        return Path(os.path.realpath(installed)).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextmanager
def database(where: Path) -> Iterator[str]:
    """The address of a database of its own, on a socket in a folder of its own."""
    import psycopg

    folder = Path(tempfile.mkdtemp(prefix="ms-bench-", dir="/tmp"))
    # PostgreSQL refuses to run as root; any account without rights will do.
    account = "nobody" if os.geteuid() == 0 else None
    if account is not None:
        os.chown(folder, pwd.getpwnam(account).pw_uid, -1)

    def run(*command: Any) -> None:
        subprocess.run(  # noqa: S603 - our own command
            [str(c) for c in command], user=account, cwd="/", check=True, timeout=60,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip

    data = folder / "data"
    run(
        where / "initdb", "-D", data, "--auth=trust", "--username=bench", "--locale=C", "-E", "UTF8"
    )
    settings = f"-k {folder} -c listen_addresses= -c shared_buffers=512MB"
    control = [where / "pg_ctl", "-D", data, "-w"]
    run(*control, "-l", folder / "log", "-o", settings, "start")
    try:
        address = f"postgresql://bench@/postgres?host={folder}"
        with psycopg.connect(address) as connection:
            connection.execute(SCHEMA)
        yield address
    finally:
        run(*control, "-m", "fast", "stop")
        shutil.rmtree(folder)

"""Databases, by program; statements are read in interpreters/sql.py."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.verdict import REMOTE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command


def _texts(command: Command) -> list[str]:
    texts = [word.text for word in command.operands]
    return texts[1:] if texts[:1] == ["compose"] else texts


def _drops(command: Command) -> bool:
    texts = _texts(command)
    name = command.name
    if name in ("dropdb", "dropuser"):
        return True
    if name == "mysqladmin":
        return any(text in ("drop", "shutdown", "flush-hosts", "password") for text in texts)
    if name == "pg_restore":
        return command.has("-c", "--clean")
    if name in ("pg_ctl", "pg_ctlcluster", "pg_dropcluster"):
        return name == "pg_dropcluster" or any(text in ("stop", "restart") for text in texts)
    if name == "mongorestore":
        return command.has("--drop")
    if name in ("influx", "etcdctl", "consul", "cqlsh", "nodetool"):
        return texts[:1] in (["del"], ["delete"]) or "delete" in texts[:2]
    return False


def _framework(command: Command) -> bool:
    texts = _texts(command)
    args = command.args
    name = command.name
    if name in ("rails", "rake", "bin/rails"):
        return any(
            re.match(r"db:(?:drop|reset|purge|schema:load|migrate:reset|truncate_all)", text)
            for text in texts
        )
    if name == "python":
        script = next((arg for arg in args if arg.endswith("manage.py")), "")
        return (
            bool(script)
            and any(arg in ("flush", "reset_db", "sqlflush") for arg in args)
            and "sqlflush" not in args
        )
    if name in ("manage", "django-admin", "manage.py"):
        undone = texts[:1] == ["migrate"] and texts[-1:] == ["zero"]
        return undone or texts[:1] in (["flush"], ["reset_db"])
    if name == "prisma":
        return texts[:2] == ["migrate", "reset"] or (
            texts[:2] == ["db", "push"] and command.has("--force-reset", "--accept-data-loss")
        )
    if name == "alembic":
        return texts[:2] == ["downgrade", "base"]
    if name == "console":
        return "doctrine:fixtures:load" in args and "--append" not in args
    if name in ("php", "artisan", "sail"):
        return any(re.match(r"(?:migrate:(?:fresh|reset|refresh)|db:wipe)", arg) for arg in args)
    if name in ("sequelize", "sequelize-cli", "knex", "typeorm", "drizzle-kit"):
        return any(
            text in ("db:drop", "db:migrate:undo:all", "migrate:rollback", "schema:drop")
            for text in texts
        )
    if name == "mix":
        return texts[:1] in (["ecto.drop"], ["ecto.reset"])
    if name in ("dotnet", "ef"):
        return "database" in texts and "drop" in texts
    if name == "flask":
        return texts[:2] == ["db", "downgrade"] or texts[:1] in (["drop-db"], ["drop_all"])
    return False


RULES = (
    Rule(
        "database.drop",
        REMOTE,
        "It drops tables, databases or other stored definitions.",
        programs=(
            "dropdb dropuser mysqladmin pg_restore mongorestore etcdctl influx pg_ctl "
            "pg_ctlcluster pg_dropcluster"
        ),
        when=_drops,
        matches=(
            "psql -c 'DROP TABLE users'",
            "dropdb app",
            "mysql -e 'drop database x'",
            "redis-cli FLUSHALL",
            "mongosh --eval 'db.dropDatabase()'",
        ),
        passes=(
            "psql -c 'select 1'",
            "pg_dump app",
            "redis-cli get x",
            "grep 'DROP TABLE' x.sql",
            "createdb app",
        ),
    ),
    Rule(
        "database.empty",
        REMOTE,
        "It deletes every row of a table.",
        matches=(
            "psql -c 'DELETE FROM users'",
            "sqlite3 a.db 'delete from t where 1=1'",
            "mysql -e 'TRUNCATE t'",
        ),
        passes=(
            "psql -c 'DELETE FROM t WHERE id = 3'",
            "sqlite3 a.db 'select * from t'",
            "mysql -e 'show tables'",
        ),
    ),
    Rule(
        "database.rewrite",
        REMOTE,
        "It changes every row of a table.",
        matches=(
            "psql -c 'UPDATE t SET a = 1'",
            "sqlite3 a.db 'update t set a=1 where true'",
            "mysql -e 'update t set a=1'",
        ),
        passes=(
            "psql -c 'UPDATE t SET a = 1 WHERE id = 2'",
            "sqlite3 a.db 'insert into t values (1)'",
            "psql -c 'select 1'",
        ),
    ),
    Rule(
        "database.reset",
        REMOTE,
        "It drops or resets a whole application database.",
        programs=(
            "rails rake python manage manage.py django-admin prisma alembic php artisan sail "
            "console sequelize sequelize-cli knex typeorm mix dotnet flask"
        ),
        when=_framework,
        matches=(
            "rails db:drop",
            "npx prisma migrate reset",
            "php artisan migrate:fresh",
            "mix ecto.reset",
        ),
        passes=(
            "rails db:migrate",
            "python manage.py migrate",
            "npx prisma generate",
            "alembic upgrade head",
        ),
    ),
)

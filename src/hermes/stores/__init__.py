"""Persistent stores.

checkpoints/   file contents before each change, for undo
sessions/      conversations: journal, search, export, session lock
memory/        the memory files that are part of every system prompt
sqlite         opening, migrations, transactions and error texts of SQLite files
todos          the todo list of a task
"""

"""Whether a message wants something done, or only words.

A small model that has tools uses them, asked or not: told to write a poem, it edits a file. So it
is asked first, in a question of its own with one of two words for an answer.
"""

from __future__ import annotations

from hermes.agent.providers.embedded.grammar import choice

CHAT, TASK = "chat", "task"
GRAMMAR = choice((CHAT, TASK))

_SORT = """\
Sort what a person says to an assistant that sits in a folder of files on their computer.
task: it has to look at, search, change or make files here, run a command, compute, or measure \
this computer.
chat: it can be answered in words from general knowledge, with no look at this computer."""

_EXAMPLES = (
    ("Good evening", CHAT),
    ("How many files end in .md here?", TASK),
    ("Write a limerick about rain", CHAT),
    ("Put the word done into status.txt", TASK),
    ("What is a web browser?", CHAT),
    ("How long has this machine been running?", TASK),
    ("Which file talks about budgets?", TASK),
    ("Give me tips for sleeping better", CHAT),
    ("Run date and tell me what it says", TASK),
    ("Thank you so much", CHAT),
    ("How do I count lines with wc?", CHAT),
    ("Pack the folder old into old.zip", TASK),
    ("What is the name of this computer?", TASK),
    ("Was ist eine Primzahl?", CHAT),
    ("Notiere in liste.txt: Milch holen", TASK),
    ("Is 15 divisible by 4?", CHAT),
    ("¿Cuál es el río más largo de África?", CHAT),
    ("Combien de lignes a le fichier journal.log ?", TASK),
    ("Work out 18% of 945 and keep it in share.txt", TASK),
    ("What is React.js good for?", CHAT),
    ("How much storage do most phones have?", CHAT),
    ("How much storage is left?", TASK),
)


def question(text: str, *, before: str = "") -> list[tuple[str, str]]:
    """What the model is asked to sort a message; the answer is held to `GRAMMAR`.

    Args:
        text: The message.
        before: What was asked for last, if that was a task: `and now the other one` is one, too.
    """
    said = [("system", _SORT)]
    for example, word in _EXAMPLES:
        said += [("user", example), ("assistant", word)]
    if before:
        said += [("user", before[:300]), ("assistant", TASK)]
    return [*said, ("user", text[:1500])]

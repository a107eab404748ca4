"""The agent: a model, the tools, and the loop between them.

agent.py              `Agent`: all parts wired together, for programs; start here
loop.py               the loop: ask the model, run its calls, append the results, repeat
journal.py            calls in the session journal; resuming after a crash
turn_lock.py          one turn at a time, across threads and event loops
budget.py             limits on steps, tokens, money and time; prices
compaction.py         shortens a history that nears the end of the context window
memory_extraction.py  proposes facts of a long conversation for memory
mixture.py            one question to several models, and one answer made of theirs
system_prompt.py      the system prompt, made once
delegation/           child agents
providers/            models over HTTP, behind the protocol of core/model_protocol.py
"""

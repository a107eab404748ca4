"""The agent: a model, the tools, and the loop between them.

agent.py      `Agent`: all of it put together, for programs
loop.py       ask the model, run its calls, append, ask again; start here
recording.py  the calls of a step in the journal
guard.py      stops a model that goes round in circles
budget.py     what a run may cost
pricing.py    what an answer costs
questions.py  one question to a model, with its part in the trace
mixture.py    several models for one question
prompt.py     the system text, made once
resuming.py   a conversation after a break
providers/    models over HTTP behind one protocol
"""

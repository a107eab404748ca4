"""The agent: a model, the tools, and the loop between them.

agent.py      `Agent`: all of it put together, for programs
loop.py       ask the model, run its calls, append, ask again; start here
guard.py      stops a model that goes round in circles
budget.py     what a run may cost
prompt.py     the system text, made once
resuming.py   a conversation after a break
providers/    models over HTTP behind one protocol
"""

"""The agent: a model, the tools, and the loop between them.

providers/   models over HTTP, and the embedded one, behind one protocol
"""

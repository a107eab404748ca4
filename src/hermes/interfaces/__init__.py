"""How people and programs reach Hermes: the command line.

A front door says who is asking and how to ask a human; it adds no rules of its own.
"""

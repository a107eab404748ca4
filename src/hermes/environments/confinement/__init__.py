"""Confinement: the operating system limits the rights of local commands.

tables             data: writable caches, open sockets, allowances by name
policy             the plan for one workspace: writable, protected and hidden paths
machine            chooses the mechanism, starts and ends it: `ConfinedMachine`
confined_guardian  a guardian for each mechanism
bwrap, landlock    a plan as arguments of bubblewrap; Landlock by system calls

Start with policy.py.
"""

"""The rules, as rows of data.

model.py        the shape of a row, and the language of its forms
predicates.py   tests that a form can't express
any_program.py  effects that look the same for every program: verbs, methods, addresses
table.py        all rules, by key and by program
"""

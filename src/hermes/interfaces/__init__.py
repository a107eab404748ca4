"""User interfaces: the command line and the terminal chat.

    cli/    `hermes COMMAND …`: one module a command
    chat/   interactive chat in a terminal

An interface parses input, calls one function of an inner layer and shows the result; it adds no
policy.
"""

"""The command line: `hermes COMMAND …`.

main         chooses the command, turns errors into one line and an exit code
commands     the table of commands; a command's module is imported when it was chosen
terminal     what is printed and how: answers to stdout, remarks to stderr, colour or none
approval     asks the person at the terminal

Every other module is the command of its name.
"""

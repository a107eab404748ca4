"""Commands on this machine.

    host_environment.py     LocalEnvironment, and the base class that the sandbox shares
    launch.py               shell, arguments, variables and stdin of a command
    process.py              one command under the guardian: pipes, status, polling
    guardian_client.py      requests to the guardian
    guardian.py             the process that starts commands, and ends them when Hermes ends
    guardian_processes.py   the guardian's process trees
    process_table.py        the system's process table, for the guardian and others
    process_listing.py      all processes of this user, for `hermes ps`; owner labels

New here? Read the docstring of guardian.py, then host_environment.py.
"""

"""Code: scripts that call tools, interpreter sessions, and the project's own linters and tests.

    script.py          run a script with its limits; the environment that it runs in
    script_calls.py    calls from a script to tools: allow-list, limits, approval
    script_channel.py  transport of these calls: Unix socket, or files of a remote environment
    stubs.py           the module `hermes_tools` that a script imports, made from tool schemas
    project.py         the project's own programs, configuration and changed files
    lint.py            linters and formatters
    test_run.py        test runners and their reports
    script_side/       programs that run in the script's process; standard library only

New here? Read script.py, then script_calls.py.
"""

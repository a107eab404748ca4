"""Commands on this machine behind bubblewrap: an unprivileged user, chosen folders.

    sandbox_environment.py   SandboxEnvironment
    bwrap.py                 arguments of bubblewrap; limits on memory and processes
    sandbox_guardian.py      client of the guardian inside; starts the sandbox

One sandbox lives as long as its task, with the same guardian inside as `host/` has outside, so that
a command costs no more than there.

New here? Read bwrap.py, then sandbox_guardian.py.
"""

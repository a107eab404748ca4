"""Commands through a remote shell: another host, a container.

    connection.py           `Transport`, the way to a remote; open shells, messages in frames
    scripts.py              the shell scripts that run there
    run.py                  one command in a worker shell, until its end
    remote_background.py    a background command
    remote_environment.py   `RemoteShellEnvironment`, base class of the backends

One remote shell, the guard, watches over the others: when Hermes ends for any reason, the guard's
stdin ends, and it stops all processes with the task's mark. Commands run in worker shells, which
are reused.

New here? Read scripts.py, then connection.py.
"""

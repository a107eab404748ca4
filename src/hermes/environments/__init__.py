"""Environments: where commands run and files are. This machine, a sandbox, a container, a host.

    environment.py       `Environment`, base class of all backends; shared settings, idle timer
    command.py           `CommandRequest`, `CommandResult`, `Isolation`; variables, output limits
    background.py        `Background` commands, the set of a task's, the restart policy
    backends.py          table of the backends, and how one is made from the settings
    for_task.py          environment and disk of a task; text of a command for the gate

    host/                this machine: guardian, processes
    confinement/         rights of commands on this machine limited by the operating system
    sandbox/             this machine behind bubblewrap
    remote_shell/        base of the backends that are reached through a shell
    docker.py            container of Docker or Podman; workspace_acl.py: access for its user
    ssh.py               another host
    singularity.py       container of Apptainer or Singularity
    cloud/               sandbox of a cloud service, by modal.py, daytona.py or vercel.py
    disk/                `Disk`: files here, behind a shell, in a shared folder

    shell_state.py       directory, variables and functions from one command to the next
    command_wait.py      wait for a command; detection of commands that wait for input
    terminal_result.py   result of the `terminal` tool; meaning of exit codes
    process_actions.py   actions of the `process` tool
    isolation_test.py    proves the isolation of a backend by probing
    sync.py              folders copied by hash

A command takes one way: `execute` makes a `CommandRequest`, the backend's `_run` carries it out, a
`CommandResult` comes back.

New here? Read environment.py, then host/host_environment.py.
"""

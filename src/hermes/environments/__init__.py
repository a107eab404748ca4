"""Environments: where commands run and files are. This machine, a sandbox, a container, a host.

    environment.py       `Environment`, base class of all backends; shared settings, idle timer
    command.py           `CommandRequest`, `CommandResult`, `Isolation`; variables of commands
    background.py        `Background` commands, and the set of a task's
    backends.py          table of the backends, and how one is made from the settings
    for_task.py          environment and disk of a task; text of a command for the gate

    host/                this machine: guardian, processes
    confinement/         rights of commands on this machine limited by the operating system
    sandbox/             this machine behind bubblewrap
    remote_shell/        base of the backends that are reached through a shell
    docker.py            container of Docker or Podman; docker_engine.py: errors, orphans;
                         workspace_acl.py: access for the container's user
    ssh.py               another host
    singularity.py       container of Apptainer or Singularity
    cloud/               sandbox of a cloud service, by modal.py, daytona.py or vercel.py
    disk/                `Disk`: files here, behind a shell, in a shared folder

    shell_state.py       directory, variables and functions from one command to the next
    command_output.py    output within limits: collector, spill file, rolling log
    command_wait.py      wait for a command
    input_wait.py        detection of commands that wait for input
    terminal_result.py   result of the `terminal` tool; meaning of exit codes
    process_actions.py   actions of the `process` tool
    restart_policy.py    background commands that are started again when they fail
    isolation_test.py    proves the isolation of a backend by probing
    owner_labels.py      labels of containers and sandboxes, so that orphans can be found
    sync.py              folders copied by hash

A command takes one way: `execute` makes a `CommandRequest`, the backend's `_run` carries it out, a
`CommandResult` comes back.

New here? Read environment.py, then host/host_environment.py.
"""

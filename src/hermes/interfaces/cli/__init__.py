"""Command line: `hermes COMMAND …`.

    main             entry point: parse, run the command, map errors to a line and an exit code
    commands         table of commands; a command's module is imported when it is chosen
    terminal         output: results to stdout, remarks to stderr, tables, colour or none
    screen_text      display width, wrapping, styles, escape sequences removed
    approval_prompt  approvals and other questions to the person at the terminal
    progress         progress lines and JSON events of a run
    signals          SIGTERM and SIGHUP handled like Ctrl-C
    agent_options    options shared by the commands that run an agent

Each other module is the command of its name; `mcp_servers` and `mcp_serve` are parts of `mcp`:

    run chat resume model setup sessions cost trace memory tools toolsets call tool mcp mcp_servers
    mcp_serve environments ps undo checkpoints plugins config trust permissions approvals audit
    doctor completion
"""

"""Command line: `hermes COMMAND …`.

    main             entry point: parse, run the command, map errors to a line and an exit code
    commands         table of commands; a command's module is imported when it is chosen
    terminal         output, tables, display width, wrapping, colours; signals that end a command
    approval_prompt  approvals and other questions to the person at the terminal
    progress         progress lines and JSON events of a run

Each other module is the command of its name, and some have a second one: `chat` resume, `model`
setup, `tools` toolsets and tool, `trace` audit, `environments` ps, `doctor` plugins, `permissions`
approvals and trust; `mcp_servers` and `mcp_serve` are parts of `mcp`:

    run chat model sessions cost trace memory tools call mcp mcp_servers mcp_serve environments undo
    checkpoints config permissions doctor completion
"""

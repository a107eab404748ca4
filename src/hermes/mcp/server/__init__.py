"""MCP server: our tools for any client, over stdio or HTTP, in both protocol versions.

Each call of a client goes through `Runtime.call`, with `front_door="mcp"`.

    handlers         the requests of the protocol, answered from an App: start here
    sessions         the state of one client: task, offered tools, calls; and its end
    calls            one running call: progress, cancellation, waiting for a person
    client_requests  elicitation, sampling and roots of a call
    notifications    changed lists, log messages and progress
    offered_tools    the tools offered to one client
    content          tool descriptions and results as protocol types
    resources        stored results of calls as resources
    stdio_server     one client over stdin and stdout
    http_server      sockets, signals and shutdown of the HTTP server
    http_guard       token, Host, Origin and size checks; the token file

The SDK (`mcp`) is an extra and takes most of a second to import: import this package late.
"""

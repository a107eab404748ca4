"""Our tools for any MCP client, over stdio or HTTP, in both eras of the protocol.

Each request of a client goes the way of every call: `Runtime.call`, with `front_door="mcp"`.

    door        the protocol's requests, answered from an App: start reading here
    sessions    one client's line of work: its task, its offer, its calls; and when it ends
    calls       one call under way: waited for, cancelled, parked while a person is asked
    questions   what a call asks of its client, in the way of its era
    asking      forms for the person at the client: approvals, `clarify`
    borrowing   the client's model and folders, for handlers
    changes     telling a client that a list is another now
    progress    how far a call is, told to the client that wants to know; `logs` what it says
    offering    the tools that one client is offered, kept up to date
    listing     a tool as the protocol describes it
    content     what a call gave, as the protocol's content blocks
    resources   large results that a client can read whole; `readable` tools that are resources
    prompts     tools that are prompts
    stdio       a client at the other end of our stdin and stdout
    framing     messages as lines of bytes
    http        clients over HTTP: who may come in, and the server that listens
    connection  one connection, which does not wait for ever for what is asked
    guard       what every HTTP request has to pass first; `heads` whose number it has
    attending   the SDK's transport, and which of the older era's sessions make room
    token       the secret that HTTP clients have to know

The SDK (`mcp`) is an extra and takes most of a second to import: only `door` and what it leads to
import it, so whoever serves imports this package late.
"""

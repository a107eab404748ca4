"""Interactive chat in a terminal.

start            entry point: editor or line mode, new or resumed session
controller       dispatch of an input line: answer, slash command or message; captured stdout
turns            turns of the conversation: send, steer, interrupt, switch sessions
agent_session    the agent and its stored session: create, resume, close

editor           frontend with a fixed input line (prompt_toolkit) below the output
renderer         prompt_toolkit renderer that survives window resizes
input_line       input buffer: keys, pastes, completion, history search
line_mode        frontend for dumb terminals: lines in, lines out
history          input history file

view             display of a turn: answer, calls, diffs, status area
markdown         streamed Markdown: split into blocks, rendered for a terminal

mentions         `@file` mentions: attach a file's text or an image to a message
slash_commands   slash commands: table, arguments, completion, implementation
"""

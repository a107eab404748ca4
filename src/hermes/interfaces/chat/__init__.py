"""The chat in a terminal: what is typed goes to the agent, what it says and does is shown.

start        begins here: which face, which session; `hermes`, `hermes chat`, `hermes resume`
chat         what a typed line means: a command, a message, a word during a turn, an answer
talk         the conversation: turns, words during one, interrupts, the change to another
opening      the agent behind it and its session: made, gone on with, ended
recap        where a session stands that somebody goes on with
worker       the thread that the agent lives in, so that typing never waits for it

editor       the face with an input line that stays while things happen above it
drawing      … in a window that may become narrower at any time
typed        that line: keys, pastes, completion
plain        the face for a terminal that can do nothing: lines in, lines out
history      what was typed before, kept for its owner
completing   what a half-typed word may become

view         a turn as the person sees it: answer, calls, diffs, what is being done now
blocks       an answer that arrives in pieces -> blocks that can be shown for good
rendering    a block of Markdown -> lines of a terminal
calls        a call and its outcome as lines
text         foreign text made safe for a screen, and fitted to it

questions    what the person is asked: approvals, and the agent's own questions
mentions     `@file` in a message -> the file's text, or the picture, beside it
catalogue    the names of the /commands
commands     what they do; most are the command line's own
arguments    what may follow them
printed      what others print, made part of the chat
"""

"""Model providers, behind the protocol of core/model_protocol.py.

model_choice.py      the model to ask: option, environment, settings; fallback to the next
services.py          table of services: addresses, keys, local servers; probes
model_profiles.py    model families: context windows, prices, quirks
http_model.py        a model over HTTP: requests, retries, server-sent events
connection.py        one HTTP client per event loop, with a timeout for each wait
errors.py            error responses: message for the person, and whether to retry
openai_chat.py, openai_responses.py, anthropic.py    the three wire formats
history.py           messages made valid for every API
stream_reader.py     collects a streamed answer; separates reasoning and calls from text
text_calls.py        tool calls that a model writes as plain text
"""

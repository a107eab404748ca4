"""Model providers, behind the protocol of core/model_protocol.py.

model_choice.py      the model to ask: option, environment, settings; fallback to the next
services.py          table of services: addresses, keys, local servers; probes
model_profiles.py    model families: context windows, prices, quirks
http_model.py        a model over HTTP: requests, retries, server-sent events
connection.py        connection to one server, with a timeout for each wait; error responses
http1_client.py      HTTP/1.1 client on h11, without proxies
proxy_client.py      the same through httpx2, behind a proxy
openai_chat.py, openai_responses.py, anthropic.py    the three wire formats
history.py           messages made valid for every API
stream_reader.py     collects a streamed answer; separates reasoning and calls from text
text_calls.py        tool calls that a model writes as plain text
"""

"""YAML tools: HTTP requests and commands defined in YAML files, reloaded on change.

    document       YAML nodes with line numbers, and the problems of a file
    spec           one tool of a file as plain values
    reader         a file's text -> specifications, or all its problems; fields reads the parts
    template       `{name}` placeholders in text and argv
    http_messages  request of a call, result text of a response; jsonpath: part of a response
    http_client    HTTP client per event loop, which connects to checked addresses only
    entries        specifications -> registry entries
    file_state     registered files, their last valid copies, change detection
    store          YamlTools: register, load, refresh

Start with store.py. The format is described in docs/yaml-tools.md.
"""

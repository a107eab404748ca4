"""Programs that run in the script's own process, sent there as text: standard library only.

python_main.py    runs a Python script; prints the value of its last expression
python_client.py  client of the calls to tools, for Python
node_client.mjs   the same for Node.js
"""

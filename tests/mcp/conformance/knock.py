"""What the suite starts for each scenario: passes it on to `client.py --serve`, and ends as that."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    told = {name: value for name, value in os.environ.items() if name.startswith("MCP_")}
    line.sendall((json.dumps({"url": sys.argv[-1], "environment": told}) + "\n").encode())
    said = line.makefile("rb").read()
sys.stderr.buffer.write(said)
sys.exit(0 if said.endswith(b"\nended 0\n") else 1)

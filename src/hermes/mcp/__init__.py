"""Model Context Protocol: client of other servers, and server of our tools.

client          tools of other servers in our registry
server          our tools for any MCP client
schemas         JSON schemas of foreign tools, repaired
untrusted_text  texts of the protocol, cleaned and cut to length
"""

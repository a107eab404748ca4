"""The Model Context Protocol, both ways.

client    other people's servers become tools of ours
server    our tools for any client
"""

"""Logging in to servers on the network: OAuth 2.1.

tokens      what a login gave, on disk for its owner alone
provider    what puts a token into each request, and renews it; never asks anybody
login       a person logs in, in a browser (PKCE); `device` with a code on another device
machine     a program logs in itself, with what it was given beforehand
discovery   where a server's login is, for the last two of these
"""

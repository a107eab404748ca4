"""OAuth 2.1 for servers on the network: logins, tokens, renewal.

tokens          token files, readable by the owner only
login           login in a browser (PKCE), and discovery of the authorization server
headless_login  login by device code, client credentials or assertions
"""

"""The MCP server: a project's memory for assistants.

A profile is a module with a table of tool definitions, ``toolbox`` makes tools of the SDK of them, and
``server`` assembles them. Only these import the SDK.
"""

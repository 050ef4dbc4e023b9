"""The MCP server: a project's memory for assistants.

``served_store`` holds the store and the scope. ``remembering`` writes, ``reading``, ``tracing`` and
``page_reading`` answer, without the SDK. ``idempotency`` answers a repeated write with the first result.
``toolbox`` turns functions into tools, a profile is a file with a table of tools, ``server`` assembles them.
Only these last three kinds of modules import the SDK.
"""

"""The MCP server: a project's memory for assistants.

``served_store`` holds the store and the scope. ``remembering`` writes, ``reading``, ``tracing`` and
``page_reading`` answer, without the SDK. ``idempotency`` answers a repeated write with the first result.
A profile is a module with a table of tool definitions (``chronomemory.tools``), ``toolbox`` turns them into
tools of the SDK, and ``server`` assembles them. Only these last three kinds of modules import the SDK.
"""

"""The memory of a project for assistants that speak the Model Context Protocol.

``served_store`` holds the store and whose it is; ``once`` makes a repeated write answer with the first
result; ``remembering`` writes and ``reading`` answers, neither with a word of the protocol; so does
``page_reading``. What a search does not need, ``later`` loads with the first call that needs it. ``toolbox``
makes tools of functions, each profile is a file with a table of them, and ``server`` puts them together.
Only these last three kinds of module import the SDK, and nothing else of the package imports them before
they are asked for.
"""

"""Verifies a log: a second opinion that shares no code with the engine, and does not load it.

The files beside this one are those of ``tools/``: standard library only, to be read, copied and handed on.
"""

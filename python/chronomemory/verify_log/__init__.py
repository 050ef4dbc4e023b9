"""An independent verifier of a log: standard library only, and no code of the engine.

Each module is a script that imports those beside it, so the folder can be copied and run anywhere.
"""

"""The time of blocks: active hours, and the sessions in which they pass."""

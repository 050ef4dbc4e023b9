"""The named functions that read and change blocks: one file a table, results are plain dicts and scalars."""

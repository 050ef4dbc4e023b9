"""Which named functions read and change blocks? One file a table; results are plain dicts and scalars."""

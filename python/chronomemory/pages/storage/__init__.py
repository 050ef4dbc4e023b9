"""How pages and entries stand in the log, and how the folder follows it."""

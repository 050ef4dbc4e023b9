"""The grammar of a page: how its text is read, and spelled again byte for byte."""

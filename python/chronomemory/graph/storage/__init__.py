"""How a graph and all around it stands in the log."""

"""How blocks come back: recalled by a question, or rendered as a frame for a prompt."""

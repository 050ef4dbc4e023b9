"""Measures how well a search brings back what answers a question."""

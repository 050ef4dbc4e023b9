"""How well does a search bring back what answers a question?"""

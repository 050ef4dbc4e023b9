"""The vocabulary of the tools whose stores and calls this package took over."""

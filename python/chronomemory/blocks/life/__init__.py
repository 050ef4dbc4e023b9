"""The life of a block: how it comes in, finds its place, proves itself and fades."""

"""A first look at mnemic: the verb demo of the command."""

"""The verbs of a memory, behind its interfaces."""

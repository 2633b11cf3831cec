"""The command `mnemic`: memories from a shell."""

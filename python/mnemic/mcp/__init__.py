"""A server of one user's or one project's memories for programs that speak MCP, and its hooks."""

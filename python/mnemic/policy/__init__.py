"""The retrieval policy: from a message to a bounded block of memories for a prompt."""

"""What a newcomer may ask, one question for each page of docs/how-to, in words of their own."""

QUESTIONS = {
    "approximate-index": "Searching eight million entries takes too long, what can I do?",
    "audit": "How do I find out whether passwords or repeated notes have piled up?",
    "backup": "How can I copy everything safely while my service is running?",
    "bring-your-memories": "How do I bring over what I have in mem0 or Chroma?",
    "command-line": "How do I store and look up notes from my terminal?",
    "delete-a-user": "A customer wants us to remove everything we know about them, what do I call?",
    "encryption": "How do I replace the master key that protects private memories?",
    "fastapi": "How does a web app keep each request to the person who is logged in?",
    "frameworks": "We build on LangChain and CrewAI, is there a plugin for those?",
    "http-models": "Can Ollama on my laptop compute the embeddings?",
    "mcp": "How does Claude Code get what it learned in earlier sessions?",
    "memory-files": "I want my coding agent's notes reviewed in git, how do I load them?",
    "move-from-faiss": "I have an IndexFlatIP with numeric ids today, what do I use here?",
    "notebook": "Does it work in Jupyter, and how do hits look in a cell?",
    "paging": "How do I get the next twenty entries of a long list?",
    "postgresql": "Can several machines share what the agent knows in our database server?",
    "results": "How do I turn the hits into a pandas DataFrame?",
    "retention": "For how long can something deleted by mistake be brought back?",
    "several-processes": "May two workers write to the same file at once?",
    "switch-embedders": "I changed the embedding model and now the file does not open, what now?",
    "tuning": "How do I make newer notes win over old ones?",
}
"""By the name of the page that answers it; written before the pages were split."""

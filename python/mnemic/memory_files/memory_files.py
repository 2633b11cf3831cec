"""MemoryFiles, the memory files of a repository and of a user, and their memory."""

from mnemic.memory_files.both_scopes import BothScopes


class MemoryFiles(BothScopes):
    """The memory files of a repository and of a user, read as one.

    An id that both have stands for the repository's file; `problems` then has the user's.

    Args:
        repo: Directory of the repository's files; None for none.
        user: Directory of the user's files; None for none.
        clock: Gives the time of new versions.

    Raises:
        InvalidArgumentError: If there is no directory, or both are the same.
    """

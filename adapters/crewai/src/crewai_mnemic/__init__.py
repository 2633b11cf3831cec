"""CrewAI's memory in one mnemic file."""

from crewai_mnemic.storage import MnemicStorage, install

__all__ = ["MnemicStorage", "install"]

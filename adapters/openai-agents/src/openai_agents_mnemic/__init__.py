"""Sessions of the OpenAI Agents SDK whose items are memories of mnemic."""

from openai_agents_mnemic.session import MnemicSession as MnemicSession

__all__ = ["MnemicSession"]

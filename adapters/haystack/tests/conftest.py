"""Haystack sends nothing of these tests."""

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

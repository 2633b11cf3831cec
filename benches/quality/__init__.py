"""Retrieval quality: rankings of several methods compared on labelled questions."""

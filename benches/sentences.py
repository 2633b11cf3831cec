"""Real English sentences without a download: the texts of Python's own library and numpy.

Docstrings, comments and the help topics of the installed Python are prose by many hands over
thirty years. They are split into sentences, without code, tables and headings.
"""

import ast
import importlib.util
import io
import re
import sysconfig
import textwrap
import tokenize
from pathlib import Path

FEWEST_WORDS, MOST_WORDS = 4, 60
LEFT_OUT = {"site-packages", "dist-packages", "__pycache__"}
PARAGRAPH = re.compile(r"\n\s*\n")
SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[\"'(`]*[A-Z])")
MARKUP = re.compile(r"``?|\*\*|:[a-z:]+:(?=`)")
CODE = re.compile(r">>>|\.\. |[{}|\\<>=#~^@\[\]]|--|__|\w\(|::|\d{4,}|\.\.\.|_\w+_")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*[,;:.?!)\"']*")
# A sentence has at least one of these; a list of names has none.
FUNCTION_WORDS = """
a an and are as at be been but by can do for from has have if in is it its may must not of on or so
than that the their then there these they this to was we when which will with you
"""
FUNCTIONS = frozenset(FUNCTION_WORDS.split())


def sentences():
    """Return the distinct sentences of the standard library and numpy, in order of their files."""
    found = {}
    for text in texts():
        for paragraph in PARAGRAPH.split(text):
            for sentence in sentences_of(paragraph):
                found.setdefault(sentence.casefold(), sentence)
    return list(found.values())


def texts():
    """Yield docstrings and comments file by file, then the help topics."""
    numpy = Path(importlib.util.find_spec("numpy").origin).parent
    for folder in (Path(sysconfig.get_path("stdlib")), numpy):
        for path in sorted(folder.rglob("*.py")):
            if LEFT_OUT.isdisjoint(path.relative_to(folder).parts):
                yield from texts_of_file(path)


def texts_of_file(path):
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):  # the library tests its parser with such files
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            yield textwrap.dedent(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
    yield from comments_of(source)


def comments_of(source):
    """Yield blocks of comments on lines of their own, each block as one text."""
    block, last = [], -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            if token.start[0] != last + 1 and block:
                yield "\n".join(block)
                block = []
            block.append(token.string.lstrip("#").strip())
            last = token.start[0]
    if block:
        yield "\n".join(block)


def sentences_of(paragraph):
    """Yield the sentences of a paragraph that read as English."""
    prose = MARKUP.sub("", " ".join(paragraph.split()))
    for sentence in SENTENCE_END.split(prose):
        if is_english(sentence):
            yield sentence


def is_english(sentence):
    words = sentence.split(" ")
    if not (FEWEST_WORDS <= len(words) <= MOST_WORDS and sentence.isascii()):
        return False
    if not sentence[0].isupper() or sentence[-1] not in ".?!" or CODE.search(sentence):
        return False
    plain = sum(bool(WORD.fullmatch(word)) for word in words)
    return plain >= 0.8 * len(words) and not FUNCTIONS.isdisjoint(word.lower() for word in words)

"""Real English sentences without a download: the texts of Python's own library and numpy.

Docstrings, comments and the help topics of the installed Python are prose by many hands over
thirty years. They are split into sentences, without code, tables and headings.
"""

import ast
import importlib.util
import io
import os
import re
import sysconfig
import textwrap
import tokenize
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

FEWEST_WORDS, MOST_WORDS = 4, 60
AT_ONCE, REPORTED = 16, 200
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


def sentences(report=None):
    """Return the distinct sentences of the standard library and numpy, in order of their files.

    `report` is called with a line about the progress now and then.
    """
    paths, found = list(files()), {}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for number, some in enumerate(pool.map(sentences_of_file, paths, chunksize=AT_ONCE)):
            if report and number % REPORTED == 0:
                report(f"read {number:,} of {len(paths):,} files, {len(found):,} sentences")
            for sentence in some:
                found.setdefault(sentence.casefold(), sentence)
    return list(found.values())


def files():
    """Yield the files of the standard library and of numpy, in order."""
    numpy = Path(importlib.util.find_spec("numpy").origin).parent
    for top in (Path(sysconfig.get_path("stdlib")), numpy):
        paths = []
        for folder, below, names in os.walk(top):
            below[:] = set(below) - LEFT_OUT
            paths += [Path(folder, name) for name in names if name.endswith(".py")]
        yield from sorted(paths)


def sentences_of_file(path):
    """Return the distinct sentences of a file."""
    paragraphs = (paragraph for text in texts_of_file(path) for paragraph in PARAGRAPH.split(text))
    return list(dict.fromkeys(chain.from_iterable(map(sentences_of, paragraphs))))


def texts_of_file(path):
    """Yield a file's docstrings and other long strings, then its comments."""
    try:
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):  # the library tests its parser with such files
        return
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno > node.lineno:
            inside.update(range(node.lineno + 1, node.end_lineno + 1))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
            yield textwrap.dedent(node.value)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
    yield from blocks(comments_of(source, inside))


def comments_of(source, inside):
    """Yield the line numbers and texts of comments on lines of their own.

    Lines inside a string, or between strings joined by the parser, may look like comments: only a
    file with such lines is tokenized, which takes most of the time.
    """
    lines = list(enumerate(source.split("\n"), start=1))
    found = [(number, line.strip()) for number, line in lines if line.lstrip().startswith("#")]
    if inside.isdisjoint(number for number, _ in found):
        yield from found
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            yield token.start[0], token.string


def blocks(comments):
    """Yield comments on adjacent lines as one text."""
    block, last = [], -1
    for number, comment in comments:
        if number != last + 1 and block:
            yield "\n".join(block)
            block = []
        block.append(comment.lstrip("#").strip())
        last = number
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

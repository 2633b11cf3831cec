"""The compiled core: exact vector search and text work over many memories."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, Self, final, overload

import numpy as np
from numpy.typing import NDArray

from mnemic.arrays import ArrayLike

__all__ = [
    "FINGERPRINT_VERSION",
    "RECORD_COLUMNS",
    "RECORD_FIELDS",
    "SUMMED_COLUMNS",
    "Coverage",
    "Hits",
    "IndexSnapshot",
    "MemoryIndex",
    "NewFile",
    "Prior",
    "RangeHits",
    "Redactor",
    "Selection",
    "SentenceEncoder",
    "Tokenizer",
    "VectorMap",
    "__version__",
    "allocate",
    "changed_sums",
    "check_links",
    "VectorSums",
    "check_rows",
    "check_vectors",
    "clip_sentences",
    "clip_sentences_batch",
    "column_sum",
    "date_ranges",
    "detect_language",
    "distinct_values",
    "duplicates",
    "estimate_tokens",
    "file_id",
    "fingerprint",
    "fingerprint_digests",
    "fold",
    "interleaved",
    "link_sums",
    "lock_calls",
    "lost_in_log",
    "markdown_blocks",
    "matches",
    "neutralise_batch",
    "passage",
    "placed_sums",
    "read_vectors",
    "redaction_names",
    "remove_part",
    "remove_parts",
    "row_sums",
    "salience_parts",
    "sentences",
    "simd_kernel",
    "sync_folder",
    "tokens",
    "truncate",
    "truncate_to_tokens",
    "vector_sums",
]

__version__: str
"""Version of the package."""

FINGERPRINT_VERSION: Final[int]
"""The version of the normal form behind fingerprints; keep it beside those you store."""

RECORD_COLUMNS: Final[tuple[str, ...]]
"""Names of the values of a record, in their order."""

RECORD_FIELDS: Final[tuple[tuple[str, str, int | None, str | None], ...]]
"""Name, kind, number in a row's checksum and name in filters of each column after the row."""

SUMMED_COLUMNS: Final[tuple[str, ...]]
"""Names of the columns that `row_sums` is given, in their order; accesses count for nothing."""

def row_sums(rows: list[tuple[Any, ...]], /) -> list[int]:
    """Return the checksum of each row, given as the values of `SUMMED_COLUMNS`; 62 bits.

    A row's sum is the sum, modulo 2**62, of hashes (XXH3) of its values, each keyed by column and
    type; NULL counts as 0.

    Raises:
        TypeError: If a value is not None, int, float, str or bytes.
        OverflowError: If an int does not fit in 64 bits.
    """

def column_sum(column: str, value: object, /) -> int:
    """Return the part of a column's value in its row's sum.

    Raises:
        InvalidArgumentError: If no sum covers the column.
    """

def vector_sums(model: str, rows: Sequence[Sequence[Any]], /) -> list[int]:
    """Return the checksum of each row's vectors, given as bytes or contiguous float32 arrays."""

def link_sums(links: Sequence[tuple[Any, ...]], /) -> list[int]:
    """Return the checksum of each link, given as target, type, strength and time."""

def changed_sums(
    rows: list[tuple[Any, ...]],
    links: list[tuple[Any, ...]],
    vectors: Mapping[int, int | None],
    /,
) -> tuple[list[tuple[int, int | None, int | None, int]], dict[str, tuple[int, int]]]:
    """Return the new sums of changed rows with their numbers, and what each agent's sum gains.

    Rows whose columns have no sum are skipped.

    Args:
        rows: Changes of a column, each of 12 values or more: what `placed_sums` takes of the row
            before the change; its agent; its new status and time of deletion, None if it is
            deleted; and the name of the column, its old value and its new one, or None if none
            changed. Of several changes of a row the first one tells what it was, and the last one
            its new state.
        links: Each begins with a row, 1 or -1 for a link that was deleted, and the link as
            `link_sums` takes it.
        vectors: New sums of the vectors of rows.

    Raises:
        InvalidArgumentError: If no sum covers a column.
        TypeError: If a value is of another type.
    """

def placed_sums(rows: list[tuple[Any, ...]], /) -> tuple[int, int]:
    """Return the number of rows with sums, and the total of their numbers and sums, in any order.

    Args:
        rows: Each its number, the sums of its columns, its vectors and its links, its status and
            its time of deletion; rows whose first sum is None are skipped, and other sums that are
            None count as 0.
    """

def lost_in_log(log: bytes, /) -> tuple[int, int] | None:
    """Return the loss of a damaged SQLite write-ahead log.

    A wrong frame in the last transaction may come from a power cut and is no damage.

    Returns:
        The first wrong frame, from 1, and the least number of commits that can no longer be
        read; None without damage.
    """

def matches(filter: object, records: list[tuple[Any, ...]], /) -> list[bool]:
    """Return whether each record passes a filter, in their order.

    A record passes if and only if an index that holds it selects it. A few records at a time are
    copied; scope and expiry are not tested.

    Args:
        filter: A tree of `mnemic.model.parse_filter`.
        records: Values in the order of `RECORD_COLUMNS`; further ones are ignored.

    Raises:
        InvalidArgumentError: If a record has too few values, or the tree is more than 64 deep.
        OutOfMemoryError: If there is too little memory for some records.
        OverflowError: If a number does not fit its column.
        TypeError: If a value is not of its column's type, or the tree holds something else.
        ValueError: If a value is outside its column's range.
    """

def distinct_values(
    filter: object,
    batches: Iterable[list[tuple[Any, ...]]],
    field: object,
    prefix: str | None,
    offset: int,
    limit: int,
    /,
) -> list[tuple[Any, int]]:
    """Return distinct values of a field in records that pass a filter; see `MemoryIndex.distinct`.

    Args:
        filter: A tree of `mnemic.model.parse_filter`.
        batches: Records as `matches` takes them.
        field: A `mnemic.model.Field`: a name, the type, tags or a path into the metadata.
        prefix: Only texts that begin with it are counted.
        offset: Number of first values to skip.
        limit: Maximum number of values.

    Raises:
        As `matches` does.
    """

@final
class VectorSums:
    """The sums of the vectors of rows that have sums, 0 where a row has no vectors.

    Not safe to use from several threads at a time.

    Args:
        sums: Rows and their sums.
    """

    def __new__(cls, sums: Sequence[tuple[int, int]] = ..., /) -> Self: ...
    @property
    def rows(self) -> int:
        """Number of rows that have vectors."""

def check_rows(
    rows: list[tuple[Any, ...]], vectors: VectorSums, /
) -> tuple[int | None, int, int, dict[int, int]]:
    """Compare rows with their sums.

    Args:
        rows: Each its number, the values of `SUMMED_COLUMNS`, and the sums of its columns, its
            vectors and its links; rows whose first sum is None are skipped.
        vectors: Gets the sum of the vectors of each row that has sums.

    Returns:
        The position of the first row with a wrong sum, or None; then the result of `placed_sums`;
        and the sum of the links of each row that has one.
    """

def check_vectors(
    model: str, vectors: list[tuple[Any, ...]], sums: VectorSums, /
) -> tuple[int | None, int]:
    """Compare vectors with the sums of rows.

    Args:
        model: The model of the vectors.
        vectors: Row and bytes of each, those of a row one after the other.
        sums: Sums of rows; other rows are skipped.

    Returns:
        The first row whose vectors differ, or None; and the number of rows.
    """

def read_vectors(
    model: str, dim: int, vectors: list[tuple[Any, ...]], sums: VectorSums, /
) -> tuple[int | None, int, tuple[NDArray[np.int64], NDArray[np.float32]] | None]:
    """Compare vectors with the sums of rows as `check_vectors` does, and copy them.

    Args:
        model: The model of the vectors.
        dim: Components of each.
        vectors: Row and bytes of each, those of a row one after the other.
        sums: Sums of rows; other rows are skipped.

    Returns:
        The result of `check_vectors`; and the rows, shape (n,), with their vectors, shape (n, dim),
        or None if a vector has another number of components.
    """

def check_links(links: Sequence[tuple[Any, ...]], sums: dict[int, int], /) -> int | None:
    """Compare all links of rows with the sums of these; return one row that differs, or None.

    Args:
        links: Row, target, type, strength and time of each.
        sums: By row.
    """

def date_ranges(text: str, /, now: int, newest: int | None = None) -> list[tuple[int, int]]:
    """Return the dates that `text` names as half-open ranges of time, in their order.

    Days begin at midnight UTC, weeks on Monday. Rather none than a wrong one: "in May" is the
    latest May up to the current month, but "may" as a verb and a bare 2023 are no dates. If the
    newest memory is more than a week old or after `now`, a date without a year is the latest one
    up to the day of that memory.
    07/05/2023 is month first unless the first number is above 12, 07.05.2023 is day first. What
    is counted from `now` is left out if the text also names a day with its year.

    Args:
        text: A question in English, Chinese, Japanese or Korean; month names may also be German,
            French or Spanish, and in these and Italian "three days ago" and "yesterday" are read.
        now: What "yesterday" and "in May" are counted from; microseconds since 1970 UTC.
        newest: The time of the newest memory, likewise; None without one.

    Returns:
        Start and end of each, in microseconds since 1970 UTC, start < end; empty if there is none.

    Raises:
        TypeError: If `text` is not a str, or `now` or `newest` not an int.
        OverflowError: If `now` or `newest` does not fit in 64 bits.
        InvalidArgumentError: If `text` holds a lone surrogate, which UTF-8 cannot express.
    """

def detect_language(text: str, /) -> str | None:
    """Return the language of a text, by its stop words and the n-grams of its letters.

    Args:
        text: The first 64 words and 400 characters are read.

    Returns:
        An ISO 639-1 code among the languages with a stemmer; None if it is not sure, as of less
        than three words, of another language, or of a script without spaces.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If `text` holds a lone surrogate, which UTF-8 cannot express.
    """

def tokens(text: str, /, language: str | None = "en") -> list[str]:
    """Return the tokens of keyword search in a text, in order; stop words are among them.

    Args:
        text: Any text. Its words are folded, cut after 64 characters and stemmed; scripts without
            spaces give pairs of characters.
        language: Language of the stemmer, by its English name or ISO 639-1 code; "auto" detects
            it, and None stems nothing.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If the language is unknown, or `text` holds a lone surrogate.
    """

def sentences(text: str, /) -> list[tuple[int, int]]:
    """Return the start and the end of each sentence in characters, in the order of the text.

    A sentence ends behind ``.``, ``!``, ``?`` or a terminator of another script, with the closing
    quotes and brackets that follow it. A full stop ends none in an abbreviation, an initial, a
    number, a list marker, an address or a file name; an ellipsis ends one before a capital or a
    letter without case alone. A line end ends one too, unless a line of at least 40 characters goes
    on in lower case. Text without a terminator at its end is a sentence; Thai and other scripts
    without terminators are split at line ends alone. White space between sentences is in none.

    Takes time linear in the text. The interpreter is detached for texts of 2 KB and more.

    Args:
        text: Any text.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If `text` holds a lone surrogate, which UTF-8 cannot express.
        OutOfMemoryError: If there is too little memory for the places.
    """

def passage(
    text: str, query: str, max_tokens: int, near: tuple[int, int] | None = None, /
) -> tuple[int, int, list[str]]:
    """Find the consecutive sentences of a text that share most with a query.

    Each distinct word of the query counts once, by how few of the sentences have it, and a stop word a
    quarter; among equals the first sentences win. Those of the part that is near by meaning win unless
    others have words that weigh more by a quarter of the query. Sentences around them are taken in as far as
    they fit, the next one first. Without a word in common the passage begins with that part. A sentence of more tokens is cut between words. Takes time linear in the text. The
    interpreter is detached for texts of 2 KB and more.

    Args:
        text: Any text.
        query: Any text.
        max_tokens: How long the passage may be, as `estimate_tokens` counts; at least 1. A single
            character may be longer.
        near: Start and end, in characters, of the part that is near by meaning; None is the whole.

    Returns:
        The start and the end of the passage in characters, apart unless `text` is empty; and the
        words of the query that it has, as the query writes them and in its order.

    Raises:
        TypeError: If `text` or `query` is not a str, or `max_tokens` not an int.
        InvalidArgumentError: If `max_tokens` is less than 1, or a text holds a lone surrogate.
    """

def markdown_blocks(text: str, /) -> list[tuple[int, int, str]]:
    """Return the blocks of a Markdown text, as CommonMark defines them, in its order.

    Blocks are headings, paragraphs, items of outermost lists, tables, code, front matter and the
    like. One that stands inside another counts as a part of it: no line of a code block is a
    heading. A block goes up to the next one.

    Returns:
        For each its first character, its level (1 to 6 for a heading, else 0), and the text of a
        heading without marks.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If `text` holds a lone surrogate.
        OutOfMemoryError: If there is too little memory for the blocks.
    """

def clip_sentences(text: str, max_sentences: int, /) -> str:
    """Return a text up to the end of its first sentences, as `sentences` finds them.

    The result is the start of the text as it stands, with "…" in the place of its final full stop, or
    behind another mark; quotes and brackets that close behind the full stop stay. A text of no more
    sentences is returned itself, the same object. Reads little further than the sentences kept.

    Args:
        text: Any text.
        max_sentences: At least 1.

    Raises:
        TypeError: If `text` is not a str, or `max_sentences` not an int.
        InvalidArgumentError: If `max_sentences` is less than 1, or `text` holds a lone surrogate.
    """

def clip_sentences_batch(texts: Iterable[str], max_sentences: int, /) -> list[str]:
    """Clip each text as `clip_sentences` does, in the order of `texts`.

    The interpreter is detached while clipping 2 KB and more. Nothing is returned if one text cannot
    be used.

    Args:
        texts: Any iterable of str, but not one str.
        max_sentences: At least 1.

    Raises:
        TypeError: If `texts` is a str or no iterable, an item is not a str, or `max_sentences` not an
            int.
        InvalidArgumentError: If `max_sentences` is less than 1, or an item holds a lone surrogate;
            the message has index and position.
    """

def truncate_to_tokens(text: str, max_tokens: int, /) -> str:
    """Cut a text to a number of tokens as `estimate_tokens` counts them, "…" at its end included.

    A text that fits is returned itself, the same object. A longer one ends behind a word, or between
    two characters of a script without spaces, or inside a word of more than 32 characters;
    user-perceived characters (grapheme clusters) stay whole. Without space for the ellipsis the
    result is empty. Reads little further than the kept text.

    Args:
        text: Any text.
        max_tokens: At least 0.

    Raises:
        TypeError: If `text` is not a str, or `max_tokens` not an int.
        InvalidArgumentError: If `max_tokens` is negative, or `text` holds a lone surrogate.
    """

def truncate(text: str, max_characters: int, /) -> str:
    """Cut a text to a number of characters (code points, as `len` counts them), "…" included.

    As `truncate_to_tokens` otherwise. With another counter of tokens, bisect over `max_characters`.

    Args:
        text: Any text.
        max_characters: At least 0.

    Raises:
        TypeError: If `text` is not a str, or `max_characters` not an int.
        InvalidArgumentError: If `max_characters` is negative, or `text` holds a lone surrogate.
    """

def redaction_names() -> tuple[list[str], list[str]]:
    """Return the names of known redaction patterns and of checks."""

@final
class Redactor:
    """Compiled patterns of redaction, for any number of threads.

    Matches that overlap become one replacement, so that no part of a match is left over. The
    replacement is literal. The interpreter is detached for texts of 2 KB and more.

    Args:
        patterns: Name, regular expression and check of each; without a regular expression the name
            is that of a known pattern. A check is the name of one, or None.
        replacement: The text in place of each match.

    Raises:
        InvalidArgumentError: If a pattern is unknown, invalid, too large or matches the empty text.
    """

    def __new__(
        cls, patterns: Sequence[tuple[str, str | None, str | None]], replacement: str, /
    ) -> Self: ...
    def redact(self, text: str, /) -> tuple[str, int]:
        """Return the redacted text and the number of replacements; without any, the text itself.

        Raises:
            InvalidArgumentError: If the text holds a lone surrogate.
            RedactionBudgetError: If the searches of a pattern read more than 32 bytes for each byte
                of the text and 1 MiB.
            OutOfMemoryError: If there is too little memory for the result.
        """

    def redact_batch(self, texts: Iterable[str], /) -> list[tuple[str, int]]:
        """Redact each text as `redact` does, in the order of `texts`.

        Raises:
            TypeError: If `texts` is a str or no iterable, or an item is not a str.
            InvalidArgumentError: If an item holds a lone surrogate; the message has index and
                position.
            RedactionBudgetError: If the searches of a pattern read one text too many times.
            OutOfMemoryError: If there is too little memory for a result.
        """

def duplicates(texts: Iterable[str], /, near: float | None = None) -> list[int]:
    """Return for each text the place of the earlier one that it repeats, or its own place.

    Texts repeat each other if their normal forms are equal: they differ only in case, width, white
    space or the punctuation around them. With `near` they also do if the same numbers stand in both
    in the same order and the Jaccard similarity of the sets of three consecutive characters of
    their normal forms is at least so much. A text is compared with those that repeat none, and
    repeats the first that matches; the place named is always one of those.

    Normal forms themselves are compared, so no text can be made to collide with another. Time is
    linear in the length of the texts; with `near` O(g·n/64) more, for n texts with g different
    trigrams each in sum, whatever the texts are. The interpreter is detached for 2 KB and more.

    Args:
        texts: Any iterable of str, but not one str. In order of preference, the best first.
        near: From 0 to 1; None for exact duplicates alone.

    Raises:
        TypeError: If `texts` is a str or no iterable, or an item is not a str.
        InvalidArgumentError: If `near` is out of range, or an item holds a lone surrogate.
    """

def estimate_tokens(text: str, /) -> int:
    """Estimate how many tokens a language model takes for `text`, by its scripts, rounded up.

    A token is 4 characters of Latin script or ASCII, 2 of another alphabet, 1 of Han, kana or
    Hangul; an emoji is 2 tokens. The estimate of two texts put together is at least that of either
    and at most the sum of both. The interpreter is detached for texts of 2 KB and more.

    Args:
        text: Any text; an empty one takes 0 tokens.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If `text` holds a lone surrogate, which UTF-8 cannot express.
    """

def fingerprint(text: str, /) -> str:
    """Return the first 16 hexadecimal characters of the SHA-256 of `text`'s normal form.

    Texts that differ only in case, width, white space or the punctuation around them agree. The 64
    bits are for display; compare the digests of `fingerprint_digests`. The normal form is
    described in docs/reference/fingerprint.md. The interpreter is detached for texts of 2 KB and more.

    Args:
        text: Any text, also an empty one.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If `text` holds a lone surrogate, which UTF-8 cannot express.
    """

def fingerprint_digests(texts: Iterable[str], /) -> list[bytes]:
    """Return the SHA-256 of each text's normal form: 32 bytes each, in the order of `texts`.

    The interpreter is detached while hashing. Nothing is returned if one text cannot be used.

    Args:
        texts: Any iterable of str, but not one str.

    Raises:
        TypeError: If `texts` is a str or no iterable, or an item is not a str.
        InvalidArgumentError: If an item holds a lone surrogate; the message has index and position.
    """

def fold(text: str, /) -> str:
    """Return `text` without differences of case and width: NFKC, full casefold, NFKC again.

    Nothing is stripped. One text is found in another, whatever their case, if its folded form is in
    the other's. The interpreter is detached for texts of 2 KB and more.

    Args:
        text: Any text, also an empty one.

    Raises:
        TypeError: If `text` is not a str.
        InvalidArgumentError: If `text` holds a lone surrogate, which UTF-8 cannot express.
    """

def interleaved(
    scores: Sequence[float], times: Sequence[int], limit: int, strategy: str, ratio: float, /
) -> list[int]:
    """Choose and order memories by score and time at once.

    The list by score is by score, then time, then place; that by time is by time, then score, then
    place. Each place of the result takes the first of its list that is not chosen yet.

    Args:
        scores: Score of each memory, higher is better.
        times: Time of each memory in any unit, later is newer.
        limit: Largest number of places.
        strategy: "alternate" fills even places, from 0, by score and odd ones by time;
            "score_first" the first places by score and the others by time; "recency_first" the
            first by time and the others by score.
        ratio: Share of the limit for the first list, half a place rounded up; "alternate" has no
            use for it.

    Returns:
        Places in `scores`, each once: `limit` of them, or all if there are fewer.

    Raises:
        CountMismatchError: If there are not as many times as scores.
        InvalidArgumentError: If a score is NaN, the ratio is not from 0 to 1, or the strategy is
            unknown.
    """

def neutralise_batch(texts: Iterable[str], /) -> list[str]:
    """Return each text as one line that a person still reads and that opens nothing in a prompt.

    White space and line breaks of every kind become single spaces, none at the ends. Invisible
    characters are removed, but for joiners and variation selectors that emoji and the spelling of
    Arabic, Indic, Mongolian and other scripts need. Headings, rules, quotations, lists, code
    fences, tags, comments, the marks of chats (`<|im_start|>`, `[INST]`) and role markers
    (`System:`) lose the character that makes them so, to one that looks like it: `‹memory>`,
    `♯ Title`, `System – `. Markup at the start of a line counts at the start of each line of the
    given text; lists only at its start.

    The result of a result is itself. A result has at most twice as many characters. Time is linear.
    The interpreter is detached for 2 KB and more. Nothing is returned if one text cannot be used.

    Args:
        texts: Any iterable of str, but not one str.

    Raises:
        TypeError: If `texts` is a str or no iterable, or an item is not a str.
        InvalidArgumentError: If an item holds a lone surrogate; the message has index and position.
    """

@final
class NewFile:
    """A file of mode 0600 that gets its name when it is complete, and is removed without that.

    It has no name until then, if the file system supports that, and disappears with its process.
    Otherwise it is a part, `.mnemic-….part` beside its place, which its process keeps locked: one
    that is not locked was left by a process that was killed. Folder and name stay the same when the
    process changes its directory. A file is for one thread at a time.

    Args:
        path: Its name.
        overwrite: Whether it takes the place of an existing file.
        named: Whether it is a part in any case.

    Raises:
        OSError: If it cannot be made.
        BlockingIOError: If another process has the part of a file that replaces none.
        ValueError: If the path cannot be one.
    """

    def __new__(
        cls,
        path: str | os.PathLike[str],
        /,
        *,
        overwrite: bool = False,
        named: bool = False,
    ) -> Self: ...
    @property
    def part(self) -> str | None:
        """Its absolute name while it is a part."""

    def fileno(self) -> int:
        """Return its descriptor, which `commit` and `discard` close.

        Raises:
            ValueError: If it is closed.
            OSError: If the system has no descriptors.
        """

    def commit(self) -> None:
        """Put it on disk, then in its place; `sync_folder` puts the name on disk.

        It is removed if this fails.

        Raises:
            FileExistsError: If the name exists and must not be replaced.
            OSError: If it cannot be written or named.
            ValueError: If it is closed, or the path cannot be one.
        """

    def discard(self) -> None:
        """Remove it unless it was committed."""

def remove_part(path: str | os.PathLike[str], /) -> None:
    """Remove the part that a killed process left of a file for this path that replaces none."""

def remove_parts(folder: str | os.PathLike[str], /) -> None:
    """Remove the parts in a folder whose processes have ended."""

def sync_folder(folder: str | os.PathLike[str], /) -> None:
    """Put the names in a folder on disk.

    Raises:
        OSError: If it cannot be opened or written.
    """

def lock_calls() -> list[tuple[str, int]]:
    """Name the functions that take the places of SQLite's system calls for file locks.

    With them SQLite's locks belong to descriptors that no other code of the process closes.

    Returns:
        Names of system calls with addresses of functions; nothing where the system has no locks of
        open file descriptions.
    """

def allocate(descriptor: int, length: int, /) -> None:
    """Allocate disk space for the first `length` bytes of an open file; contents are unchanged.

    Raises:
        OSError: If the disk is full, or the file system cannot do this.
    """

def file_id(path: str, /) -> tuple[int, int] | None:
    """Return device and inode of a path; None if it does not exist.

    Always None on systems without inodes.
    """

def simd_kernel() -> str:
    """Return the name of this process's kernel: "avx512vnni", "avx2", "neondot", "neon" or
    "portable".

    The fastest kernel of this CPU is chosen at first use; the environment variable
    `MNEMIC_KERNEL` forces one. All kernels give the same answers to the last bit.

    Raises:
        KernelUnavailableError: If `MNEMIC_KERNEL` is unknown, or this CPU cannot run it.
    """

def salience_parts(
    salience: Any,
    /,
    *,
    created_at: int,
    last_accessed_at: int | None,
    access_count: int,
    importance: float,
    now: int,
) -> tuple[float, float, float]:
    """Return recency, frequency and their weighted mean with the importance, each from 0 to 1.

    Memories are ranked by this mean; times are microseconds since 1970 in UTC.

    Args:
        salience: Weights and scales, a `mnemic.model.Salience`.
        created_at: Time of creation.
        last_accessed_at: Time of the last access; None counts from the creation.
        access_count: Number of accesses.
        importance: From 0 to 1.
        now: Reference time.
    """

@final
class Selection:
    """Ids that a search is limited to, made by `VectorMap.select`.

    Reuse saves the look-up of its ids until the map changes. Ids that are missing in the map
    match nothing.
    """

    @property
    def ids(self) -> NDArray[np.int64]:
        """The selected ids, ascending, each once."""

    def __len__(self) -> int: ...

@final
class Prior:
    """Scores of ids before a query, made by `VectorMap.prior`.

    Reuse saves the look-up of its ids until the map changes. Other ids have 0.
    """

    def __len__(self) -> int: ...

@final
class Hits:
    """The result of a search, best first: two arrays, which unpack as `ids, scores = hits`.

    Pairs are `zip(hits.ids, hits.scores)`. Hits are true if there is any. They have neither a
    length nor items of their own: `len(hits)` and `hits[0]` raise a TypeError that names the arrays.
    """

    @property
    def ids(self) -> NDArray[np.int64]:
        """Shape (n,) with n = min(k, matches); for a batch (m, k), padded with -1, which is no row's id."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """Same shape as `ids`; padded with -inf."""

    @property
    def counts(self) -> NDArray[np.int64] | None:
        """Number of hits of each query of a batch, shape (m,); None for a single query."""

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Whether a place of `ids` holds a hit; same shape. All do for a single query."""

    def __iter__(self) -> Iterator[NDArray[Any]]: ...
    def __bool__(self) -> bool: ...
    def __len__(self) -> NoReturn: ...
    def __getitem__(self, at: object, /) -> NoReturn: ...

@final
class RangeHits:
    """The result of a range search: three arrays, which unpack as `limits, ids, scores = hits`.

    The hits of query `i`, best first, are `ids[limits[i]:limits[i + 1]]` with
    `scores[limits[i]:limits[i + 1]]`, as in FAISS.
    """

    @property
    def limits(self) -> NDArray[np.int64]:
        """Where the hits of each query begin, and at last where they end, shape (m + 1,)."""

    @property
    def ids(self) -> NDArray[np.int64]:
        """Ids of all hits, one query after the other, shape (limits[-1],)."""

    @property
    def scores(self) -> NDArray[np.float64]:
        """Their scores, same shape."""

    def __iter__(self) -> Iterator[NDArray[Any]]: ...

@final
class VectorMap:
    """Vectors by id, searched exactly.

    A search sees the map as one whole call left it: readers never wait for a scan or a write,
    and never see half of one. The interpreter is detached while rows are scanned or written.

    Args:
        dim: Components of a vector, 1 to 32,768.
        metric: "cosine" scales rows and queries to unit length in float32 (the zero vector stays
            zero); "inner_product" takes them as they are.

    Raises:
        InvalidArgumentError: If `dim` or `metric` is out of range.
        KernelUnavailableError: If `MNEMIC_KERNEL` cannot be had.
    """

    def __new__(cls, dim: int, *, metric: str = "cosine") -> VectorMap: ...
    @classmethod
    def from_rows(cls, ids: ArrayLike, vectors: ArrayLike, /, metric: str = "cosine") -> VectorMap:
        """Make a map of these rows.

        Args:
            ids: Shape (n,), each once.
            vectors: Shape (n, dim); their last axis is the map's dimension.
            metric: "cosine" or "inner_product".

        Raises:
            ArrayTypeError: If `vectors` has not two axes.
            InvalidArgumentError: As `replace`, and if `metric` is out of range.
        """

    @staticmethod
    def load(path: str | os.PathLike[str], /) -> VectorMap:
        """Open a file of `save`.

        Rows stay in the file, which is mapped: opening a million takes a fraction of a second, and
        processes that open the same file share its memory. Changes are the map's own and never
        reach the file. Header, directory and ids are checked here; codes and vectors by the first
        call that reads them.

        Raises:
            VectorFileError: If the file cannot be read.
            VectorFileDamagedError: If it is damaged, or of another kind or version.
            OutOfMemoryError: If there is no memory to map the file.
        """

    def save(self, path: str | os.PathLike[str], /, *, label: bytes | None = None) -> None:
        """Write the map to a file.

        The file is written beside its place, synced and renamed, so that it is there as a whole or
        not at all, and a file of that name is replaced. Only its owner may read it. Concurrent
        changes are not in it. A process that is killed while it saves leaves nothing on most
        file systems of Linux, and elsewhere an unfinished file, which the next save to the same
        path removes.

        Args:
            path: The file.
            label: Bytes to keep with the rows, for the caller's own use; None keeps those that
                the map was loaded with.

        Raises:
            VectorFileError: If the file cannot be written; an earlier one is unchanged.
        """

    @property
    def label(self) -> bytes:
        """The bytes that the map was loaded with; b"" otherwise."""

    def ids(self) -> NDArray[np.int64]:
        """Return all ids, ascending, shape (len(self),)."""

    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def dim(self) -> int:
        """Components of a vector."""

    @property
    def metric(self) -> str:
        """"cosine" or "inner_product"."""

    @property
    def nbytes(self) -> int:
        """Bytes held: rows with their coarse copies, dead and unused ones too, and ids (estimated)."""

    def __len__(self) -> int: ...
    def __contains__(self, id: object, /) -> bool: ...
    def replace(self, ids: ArrayLike, vectors: ArrayLike, /) -> None:
        """Replace the whole content in one swap.

        Args:
            ids: Shape (n,), whole numbers within int64, each once; any but -1, which marks the
                places of a batch answer that have no hit.
            vectors: Shape (n, dim), float32; other float and integer dtypes are converted.

        Raises:
            InvalidArgumentError: If an id is -1.
            ArrayTypeError: If an argument is not an array of numbers.
            DimensionMismatchError: If the last axis is not `dim`.
            CountMismatchError: If the lengths differ.
            DuplicateIdError: If an id is given twice.
            NonFiniteVectorError: If a vector holds NaN or infinity.
        """

    def upsert(self, ids: ArrayLike, vectors: ArrayLike, /) -> None:
        """Insert or overwrite rows. Arguments and errors are those of `replace`."""

    def remove(self, ids: ArrayLike, /) -> int:
        """Remove rows and return their number. Unknown ids are ignored.

        Args:
            ids: Shape (n,); any order.
        """

    @overload
    def get(self, ids: int, /) -> NDArray[np.float32] | None: ...
    @overload
    def get(self, ids: Sequence[int] | NDArray[np.integer[Any]], /) -> NDArray[np.float32]:
        """Return stored rows: under "cosine" the float32-normalised ones.

        Args:
            ids: One id, or shape (n,).

        Returns:
            For one id its row, shape (dim,), or None if it is missing; else shape (n, dim).

        Raises:
            UnknownIdError: If one of several ids has no row.
        """

    def select(self, ids: ArrayLike, /) -> Selection:
        """Make a reusable `allow` of these ids; repeats count once.

        Args:
            ids: Shape (n,); any order.
        """

    def prior(self, ids: ArrayLike, values: ArrayLike, /) -> Prior:
        """Make a reusable `prior` of these values, one for each id.

        Args:
            ids: Shape (n,), whole numbers within int64, each once.
            values: Shape (n,), kept as float32.

        Raises:
            ArrayTypeError: If an argument is not an array of numbers.
            CountMismatchError: If the lengths differ.
            DuplicateIdError: If an id is given twice.
            NonFiniteVectorError: If a value is NaN or infinite.
        """

    def flush(self) -> None:
        """Finish background maintenance: compaction, and the sketches that make long searches
        faster. Answers are the same before and after.
        """

    def search(
        self,
        query: ArrayLike,
        /,
        k: int = 10,
        *,
        allow: Selection | ArrayLike | None = None,
        min_score: float | None = None,
        weight: float = 1.0,
        prior: Prior | None = None,
        combine: str | None = None,
        threads: int = 1,
    ) -> Hits:
        """Find the `k` rows with the largest score, exactly.

        A score is `weight * similarity + prior`. The similarity is the float64 sum of the exact
        products of two float32 vectors, added over eight lanes and a fixed tree, so it is the
        same on every CPU; the product and the sum with the float32 prior are rounded to float64
        once each. Order: score descending, then id ascending. There are always
        min(k, matching rows) hits.

        Args:
            query: Shape (dim,) or (m, dim), float32; other float and integer dtypes are converted.
                Several queries are answered in one pass over the rows.
            k: Largest number of hits; 0 gives an empty answer.
            allow: Ids that may be hits: a `Selection` or an array of ids; None allows all.
            min_score: Smallest score of a hit, inclusive, compared in float64; None allows all.
            weight: Factor of the similarity, from 0 to 1e30.
            prior: Summand of each id's score; None adds nothing.
            combine: None answers each query by itself; "max" gives one answer in which each row
                counts with the largest of its similarities to the queries.
            threads: Threads that share the scan, at least 1. More than one pays for scans of a
                millisecond and more; a thread that has not begun when the rest is done is not
                waited for.

        Raises:
            ArrayTypeError: If an argument is not an array of numbers.
            DimensionMismatchError: If the last axis is not `dim`.
            NonFiniteVectorError: If a query holds NaN or infinity.
            InvalidArgumentError: If `k`, `weight`, `combine` or `threads` is out of range, or
                `min_score` is NaN.
        """

    def range_search(
        self,
        query: ArrayLike,
        /,
        *,
        min_score: float,
        allow: Selection | ArrayLike | None = None,
        weight: float = 1.0,
        prior: Prior | None = None,
    ) -> RangeHits:
        """Find all rows that score at least `min_score`, exactly.

        Arguments, scores, order and errors are those of `search`. All rows are read, whatever
        `min_score` is; with a `min_score` that most rows reach the hits take as much memory.

        Args:
            query: Shape (dim,), which counts as one query, or (m, dim).
            min_score: Smallest score of a hit, inclusive, compared in float64.
            allow: As in `search`.
            weight: As in `search`.
            prior: As in `search`.

        Raises:
            OutOfMemoryError: If the hits do not fit memory.
        """

    def count(
        self,
        query: ArrayLike,
        /,
        *,
        min_score: float,
        allow: Selection | ArrayLike | None = None,
        weight: float = 1.0,
        prior: Prior | None = None,
    ) -> Any:
        """Count the rows that score at least `min_score`, exactly.

        Arguments, scores and errors are those of `search`. Bounds decide nearly every row, and
        only the others are scored; all rows are read, whatever `min_score` is.

        Returns:
            An int; for queries of shape (m, dim) int64 counts of shape (m,).
        """

@final
class Coverage:
    """The languages that an embedder covers.

    Args:
        languages: ISO 639-1 codes, in small letters.

    Raises:
        InvalidArgumentError: If a code is unknown.
    """

    def __new__(cls, languages: Sequence[str], /) -> Self: ...
    def covers(self, text: str, /) -> bool:
        """Return whether a text is in a covered language.

        At least half of its letters are of the scripts of covered languages, and it is not plainly
        in another language. A text without letters is covered.
        """
    def max_share(self, text: str, /) -> float:
        """Return the largest share of similarity in a match of a text: 1 if it is covered.

        It is .1 in another language of the scripts of covered ones, .05 in Han and Kana, else 0.
        """

@final
class SentenceEncoder:
    """A BERT encoder of sentences on the CPU, with mean pooling (Reimers and Gurevych 2019).

    The weights are 8-bit integers, mapped from a file that processes share. Activations are rounded
    to 8 bits, each token by itself: a vector is the same, bit for bit, on every CPU and whatever
    texts are beside it. Thread-safe.

    Args:
        weights: The file of weights.
        tokenizer: The tokenizer of the model.
        verify: Whether all bytes are compared with the checksum in the file; else the header and
            the length are.

    Raises:
        EmbeddingError: If the file cannot be read, or is not one of weights.
        KernelUnavailableError: If `MNEMIC_KERNEL` names no kernel of this CPU.
    """

    def __new__(
        cls,
        weights: str | os.PathLike[str],
        tokenizer: Tokenizer,
        /,
        *,
        verify: bool = False,
    ) -> Self: ...
    def embed(
        self,
        texts: list[str],
        /,
        *,
        threads: int | None = None,
        deadline: float | None = None,
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the vectors of texts, and which of them have more tokens than the model reads.

        Signals are handled every few hundred texts, so that an interrupt ends the call.

        Args:
            texts: Any number of texts.
            threads: The most threads that work, this one among them; None for all CPUs. A call with
                few tokens uses this one alone.
            deadline: In seconds of `time.monotonic()`, looked at before each layer.

        Returns:
            Shape (texts, dimensions), rows of unit length; shape (texts,).

        Raises:
            DeadlineExceededError: If the deadline passes.
            InvalidArgumentError: If a text holds a lone surrogate, or the tokenizer is of another
                model.
            OutOfMemoryError: If there is too little memory.
        """

@final
class Tokenizer:
    """The tokenizer of a model. A text is read no further than `max_tokens` reach. Thread-safe."""

    @staticmethod
    def word_piece(file: bytes, /, *, max_tokens: int) -> Tokenizer:
        """Return the tokenizer of an uncased BERT model, exactly as the library tokenizers runs it.

        Control characters and accents are dropped, letters made small; ideographs and punctuation
        marks are words of their own. A word is cut into the longest known pieces; a word with an
        unknown piece, or of more than 100 characters, is `[UNK]`.

        Args:
            file: Content of the model's `tokenizer.json`: the ids of the pieces, of which those
                within words begin with `##`, and the tokens that are found in a text by their exact
                characters, before everything else. Padding and truncation in it are ignored.
            max_tokens: Maximum number of tokens of a text, with `[CLS]` and `[SEP]`.

        Raises:
            InvalidArgumentError: If it is another file, or `[UNK]`, `[CLS]`, `[SEP]` or an added
                token has no id.
        """

    @staticmethod
    def unigram(path: str | os.PathLike[str], /, *, max_tokens: int) -> Tokenizer:
        """Return the tokenizer of XLM-RoBERTa or a model with its vocabulary, as sentencepiece.

        Controls are dropped, white space and joiners part words, and the rest has the form NFKC. A
        word is cut into the pieces whose probabilities have the largest product (Kudo 2018, arXiv
        1804.10959), of equal cuts into those with the longest last piece; characters that no piece
        has are one unknown token. No text is a special token.

        Args:
            path: The file of pieces, which is mapped.
            max_tokens: Maximum number of tokens of a text, with `<s>` and `</s>`.

        Raises:
            InvalidArgumentError: If it is another file.
            VectorFileError: If it cannot be read.
        """

    def encode(self, text: str, /) -> tuple[NDArray[np.int64], bool]:
        """Return the token ids of a text, and whether there were more than `max_tokens`.

        Returns:
            Shape (1, tokens), with the tokens that stand before and behind each text.

        Raises:
            InvalidArgumentError: If the text holds a lone surrogate.
        """

    def characters_seen(self, text: str, /) -> int:
        """Return how many characters at the beginning of a text its tokens cover.

        They go up to the last one that a token is made of, so they alone have the same tokens. The
        library tokenizers has other numbers where canonical order moves combining marks.

        Raises:
            InvalidArgumentError: If the text holds a lone surrogate.
        """

@final
class IndexSnapshot:
    """A `MemoryIndex` as it was at one moment."""

    def save(
        self, path: str | os.PathLike[str], label: bytes, /, *, without: Sequence[int] = ...
    ) -> None:
        """Write the index to a file, which appears complete or not at all.

        Only its owner may read it. Sensitive memories are left out, and nothing is in it of
        memories that were removed before. The interpreter is detached meanwhile.

        Args:
            path: The file.
            label: Bytes to keep with it, for the caller.
            without: Rows of further memories that are left out.

        Raises:
            VectorFileError: If the file cannot be written; an earlier one is unchanged.
            VectorFileDamagedError: If the index was loaded from a file that is damaged.
        """

    @property
    def vector_count(self) -> int:
        """Number of vectors, those of each chunk counted."""

    def vectors(
        self, first: int, docids: int, /
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], int | None]:
        """Return the vectors of memories by docid, which numbers them in order of arrival.

        Args:
            first: The first docid.
            docids: Number of docids, of which some may have no vector.

        Returns:
            Rows, shape (n,), vectors at unit length or null, shape (n, dim), and the docid after
            them, None at the end. The vectors of a row with several chunks are next to each other.

        Raises:
            VectorFileDamagedError: If the index was loaded from a file that is damaged.
        """

    def sensitive(self) -> NDArray[np.int64]:
        """Return the rows of sensitive memories, shape (n,), which a file must not have."""

@final
class MemoryIndex:
    """An agent's memories, ranked exactly by similarity, keywords and attributes.

    Readers see each change as a whole. Changes and rankings run without the interpreter lock. Safe
    to use from many threads.

    Args:
        dim: Components of a vector, 1 to 32,768; None for memories without vectors.
        language: Language of stemmer and stop words, by its English name or ISO 639-1 code; "auto"
            detects that of each memory and query, and takes that of most of the user's memories
            where it is not sure; None stems nothing.
        coverage: The languages of the embedder that the vectors are from; None for any.

    Raises:
        InvalidArgumentError: If dim is out of range, or the language unknown.
    """

    def __new__(
        cls,
        dim: int | None,
        /,
        *,
        language: str | None = "en",
        coverage: Coverage | None = None,
    ) -> Self: ...
    @staticmethod
    def load_file(
        path: str | os.PathLike[str],
        dim: int | None,
        /,
        *,
        language: str | None = "en",
        coverage: Coverage | None = None,
    ) -> tuple[MemoryIndex, bytes]:
        """Open a file of `IndexSnapshot.save`; return its index and the label.

        Vectors stay in the file, which is mapped, and are checked when they are first read.
        Arguments are those of the index that was saved.

        Raises:
            VectorFileError: If the file cannot be read.
            VectorFileDamagedError: If it is damaged, of another kind or version, or its vectors
                have another dimension.
        """

    def snapshot(self) -> IndexSnapshot:
        """Return the index as it is now, which later changes leave alone."""

    @property
    def dim(self) -> int:
        """Components of a vector; 0 without vectors."""
    @property
    def nbytes(self) -> int:
        """Bytes held, contents left out; partly estimated."""
    def next_expiry(self, scope: Any, now: int, /) -> int | None:
        """Return the first time after now, in microseconds, at which a user's memory expires.

        Only the user of the scope counts, or all users if it has all users.
        """
    @property
    def docids(self) -> int:
        """Number of docids, those of removed memories included."""
    def __len__(self) -> int:
        """Return the number of memories, expired ones too."""
    def apply(
        self,
        records: list[tuple[Any, ...]],
        embedded: ArrayLike,
        vectors: ArrayLike | None,
        removed: Sequence[int],
        linked: Sequence[int] = ...,
        links: Sequence[tuple[int, int, int, float]] = ...,
        /,
    ) -> None:
        """Remove and add memories in one step.

        Args:
            records: Values in the order of `RECORD_COLUMNS`. A record of an existing row replaces
                it; its vector stays if the content does.
            embedded: Rows of the vectors, shape (n,); a repeated row has several chunks.
            vectors: Their vectors, shape (n, dim); None for none.
            removed: Rows to remove, with the links from them; unknown rows are ignored.
            linked: Rows whose links are replaced.
            links: All links of these rows: from row, to row, type below 32, strength. A link to a
                missing row has no effect until the row exists.

        Raises:
            UnknownIdError: If a vector's row is missing; nothing is changed then.
            NonFiniteVectorError: If a vector has NaN or infinity; nothing is changed then.
            CountMismatchError: If there are not as many vectors as rows.
            DimensionMismatchError: If they have another dimension.
            ValueError: If a value of a record is out of range.
        """
    def load(
        self, records: list[tuple[Any, ...]], embedded: ArrayLike, vectors: ArrayLike | None, /
    ) -> None:
        """Add memories as `apply` does, when more follow before the next search.

        Compaction and sketches, which never change an answer, are left for the next `apply`, even
        of no change.

        Raises:
            DimensionMismatchError: As `apply`.
            ValueError: As `apply`.
        """
    def raise_accesses(self, accesses: list[tuple[int, int | None, int]], /) -> None:
        """Raise last access and access count to at least these values, in one step.

        Args:
            accesses: Row, last access in microseconds since 1970 in UTC, and number of accesses;
                unknown rows are ignored.

        Raises:
            ValueError: If a number of accesses is negative; nothing is changed then.
        """
    def add_accesses(self, accesses: list[tuple[int, int | None, int]], /) -> None:
        """Add to access counts in one step.

        Args:
            accesses: As those of `raise_accesses`.

        Raises:
            ValueError: If a number of accesses is negative; nothing is changed then.
        """
    def accesses(self, rows: list[int], /) -> list[tuple[int | None, int] | None]:
        """Return last access, in microseconds since 1970 in UTC, and access count of each row.

        Args:
            rows: In any order; None is returned for a missing row.
        """
    def unembedded(self) -> list[int]:
        """Return the rows without a vector, ascending; none if the index has no vectors."""
    @property
    def has_speakers(self) -> bool:
        """Whether any memory ever had a speaker."""
    def cosine_scale(
        self, scope: object, now: int, /
    ) -> tuple[float, float, float, float, NDArray[np.float32]] | None:
        """Return the numbers of a `mnemic.model.search.CosineScale` of a user, in their order.

        Behind them stands the sum of the memories' directions, shape (dim,). None is returned with
        fewer than 32 vectors. They do not depend on the order in which the memories came.

        Args:
            scope: A `mnemic.model.Scope`; its user's memories are compared.
            now: Microseconds since 1970 in UTC.

        Raises:
            OutOfMemoryError: If there is too little memory.
        """

    def in_first_person(
        self, text: str, scope: object, now: int, deadline: float | None = None, /
    ) -> str:
        """Return a text with "I" and "my" for the names of the speakers in a scope's memories.

        Args:
            text: A query.
            scope: A `mnemic.model.Scope`.
            now: Microseconds since 1970 in UTC.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
    def rank(
        self,
        search: object,
        scope: object,
        now: int,
        vectors: ArrayLike | None = None,
        context: ArrayLike | None = None,
        limit: int | None = None,
        best_match: float | None = None,
        proposed: ArrayLike | None = None,
        time_zone: bytes | None = None,
        /,
    ) -> tuple[
        list[
            tuple[
                int,
                bytes,
                float,
                dict[str, float],
                int | None,
                int,
                float | None,
                tuple[
                    dict[str, float],
                    list[tuple[str, str, int]],
                    bytes | None,
                    tuple[int, int] | None,
                    str | None,
                    str | None,
                ]
                | None,
                int | None,
            ]
        ],
        int | None,
        bool,
        bool,
        float | None,
        bool,
        bool,
    ]:
        """Return the best memories, the number of matches, marks, and the similarity's share.

        The marks are whether the answer is partial, whether some memories were not considered, and,
        last, whether the evidence was below its floor and whether the text names one speaker and
        the best memory is by another. The share is None without a query.

        Each memory with row, id, score, components, last access in microseconds since 1970 in UTC,
        number of accesses, cosine, reasons (shares of the score, words with their turns, id of a
        neighbour, start and end of a named time, role, speaker), and which of several vectors is
        nearest.

        Order: score, then newest, then smallest id, then the first user by name, no user first.
        The answer of a smaller limit is the head of that of a larger one.

        Args:
            search: A `mnemic.model.Search`.
            scope: A `mnemic.model.Scope`.
            now: Microseconds since 1970 in UTC.
            vectors: The query, shape (m, dim); None without similarity.
            context: A context, shape (m, dim); None without one.
            limit: Largest number of results; None is the search's.
            best_match: Divisor of matches in a relative search; None is the best match of the
                scope.
            proposed: Rows, shape (n,): only these are considered, the best keyword candidates, and
                the neighbours of both; None ranks all.
            time_zone: Changes of the offset of the time zone whose days the query names, as
                `mnemic.model.time_zones.offset_changes` returns them; None is UTC.

        Raises:
            DeadlineExceededError: If the search's deadline passes, and it takes no partial answer.
            DimensionMismatchError: If a vector has another dimension.
            NonFiniteVectorError: If a vector has NaN or infinity.
        """
    def filling(self, rows: Sequence[int], max_tokens: int, /) -> list[int]:
        """Return the places of those rows that a text of so many tokens may hold.

        These are the first ones until it must be full, and short ones behind them. The interpreter
        is detached.

        Args:
            rows: The best first; those that are not known are among the result.
            max_tokens: Tokens of the text, by `estimate_tokens`.
        """
    def surface_forms(self, text: str, tokens: Sequence[str], /) -> list[tuple[str, list[int]]]:
        """Return where tokens are written in a text, each stretch with the places of its tokens.

        In the order of the text, each different stretch once. Of scripts without spaces, adjacent
        pairs of characters are one stretch.

        Args:
            text: A memory, or a query.
            tokens: Tokens of a query or of a memory.
        """
    def selected(
        self, search: object, scope: object, now: int, few: int, /
    ) -> tuple[int, NDArray[np.int64] | NDArray[np.uint8] | None] | None:
        """Return the number of rows that a search selects, and the rows; None if at most `few`.

        The rows are int64, ascending, or a bitmap of uint8 where that is smaller, in which row r is
        bit r % 8 of byte r // 8; None stands for all rows.

        Args:
            search: A `mnemic.model.Search`.
            scope: A `mnemic.model.Scope`.
            now: Microseconds since 1970 in UTC.
            few: Up to so many rows need not be returned.
        """
    def listed(self, request: object, /) -> list[tuple[int, int | None, int]]:
        """Return row, last access and access count of the memories of a list, in its order.

        Args:
            request: A `mnemic.index.ListRequest`.

        Raises:
            OutOfMemoryError: If there is too little memory.
        """
    def counted(self, request: object, /) -> int:
        """Return the number of memories of a list without its limit and offset.

        Args:
            request: A `mnemic.index.ListRequest`.

        Raises:
            OutOfMemoryError: If there is too little memory.
        """

    def distinct(
        self, request: object, field: object, prefix: str | None = None, /
    ) -> list[tuple[Any, int]]:
        """Return distinct values of a field and the number of memories with each; ascending.

        Args:
            request: A `mnemic.index.ListRequest`, whose limit and offset are those of the values.
            field: A `mnemic.model.Field`: a name, the type, tags or a path into the metadata.
            prefix: Only texts that begin with it are counted.

        Raises:
            OutOfMemoryError: If there is too little memory.
        """

    def linked(
        self, request: object, /
    ) -> tuple[list[tuple[int, bytes, float, tuple[int, ...], int | None, int]], int]:
        """Return linked memories, and their number.

        Each with row, id, the largest product of strengths of a path to it, the types of the links
        on that path, last access and number of accesses. Order: strength, then fewest hops, then newest, then smallest id, then
        first user. The first row must be in the scope, and need not match the filter.

        Args:
            request: A `mnemic.index.LinkSearch`.

        Raises:
            DeadlineExceededError: If the search's deadline passes.
            InvalidArgumentError: If the depth is not from 1 to 3.
        """
    def neighbours(
        self, request: object, /
    ) -> list[tuple[int, bytes, float, int, int, int, int | None, int]]:
        """Return the memories that links lead to from several rows with scores.

        Each with row, id, score, the type of the last link, the row before it, the number of links,
        last access and number of accesses. The score is that of the start, times decay and strength
        of each link; the best path counts. Order: score, then fewest links, then newest, then
        smallest id, then first user. A link to a superseded memory leads to the head of its
        versions, and with a depth of 0 a superseded start itself does.

        Args:
            request: A `mnemic.index.NeighbourSearch`.

        Raises:
            DeadlineExceededError: If the search's deadline passes.
            InvalidArgumentError: If the depth is not from 0 to 3, or a decay not from 0 to 1.
        """
    def related(
        self, query: str, texts: list[tuple[str, float]], scope: Any, limit: int, /
    ) -> list[tuple[str, float]]:
        """Return words of texts that belong to a query, with weights up to 1, best first.

        Args:
            query: Its own words are left out.
            texts: Each with its weight.
            scope: Words weigh by how rare they are among the memories of its user.
            limit: Largest number of results.
        """
    def key_phrases(self, text: str, scope: Any, limit: int, /) -> list[tuple[str, float]]:
        """Return phrases of a text that a user's memories hold, with weights up to 1, best first.

        Args:
            text: Source of the phrases.
            scope: The memories of its user decide which words count, and how rare they are.
            limit: Largest number of results.
        """

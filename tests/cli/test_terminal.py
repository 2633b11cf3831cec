"""The command at a terminal: tables of its width, bars, interrupts, and pipes that close."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from itertools import pairwise

import pytest

from mnemic import Memory
from mnemic.cli.main import DONE, INTERRUPTED
from mnemic.records.lines import display_width

COMMAND = [sys.executable, "-m", "mnemic.cli"]
# Every number is drawn, not one a second.
DRAWING = """
import sys, mnemic.reporting.progress as progress
progress.SECONDS_BETWEEN_LINES = 0.0
from mnemic.cli.main import main
sys.exit(main())
"""
TEXTS = [
    "安娜五月搬到奥斯陆她在港口边开了一家面包店每天早上五点起床烤面包周末休息并去滑雪",
    "party 🎉🎉🎉 with the flag 🇳🇴 of the country, in one line that has to be wrapped somewhere",
    "Cafe\u0301 with a stack Z\u0301\u0302\u0303\u0304algo, which goes on until the line is full",
    "https://example.org/" + "a-very-long-path/" * 8,
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\ \x1b[2J \x9b2J \u202eesrever \x07 end",
]


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, *arguments, columns=120, command=COMMAND, **options):
        self._end, follower = pty.openpty()
        self.resize(columns)
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it
        self._process = subprocess.Popen(
            [*command, *arguments],
            env=os.environ | {"TERM": "xterm"} | options,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - Ctrl-C
        )
        signal.signal(signal.SIGINT, before)
        os.close(follower)

    def resize(self, columns):
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def until(self, part):
        """Return what is shown up to a part of it."""
        shown = b""
        while part.encode() not in shown:
            shown += os.read(self._end, 4096)
        return shown.decode(errors="replace")

    def type(self, keys):
        os.write(self._end, keys.encode())

    def rest(self):
        """Return the exit code, and what is shown until the end."""
        shown = b""
        while True:
            try:
                read = os.read(self._end, 4096)
            except OSError:
                break
            if not read:
                break
            shown += read
        os.close(self._end)
        return self._process.wait(30), shown.decode()


def plain(shown):
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.fixture
def filled(place):
    with Memory(place, embedder=None) as memory:
        memory.add_many(TEXTS)
    return place


@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize(
    "verb", [["list"], ["timeline"], ["search", "--keyword", "party algo click", "-n", "5"]]
)
def test_a_table_is_as_wide_as_the_terminal_and_cuts_no_text(filled, verb, columns):
    del filled
    code, shown = Terminal(*verb, columns=columns).rest()
    lines = plain(shown).splitlines()
    assert code == DONE
    assert max(map(display_width, lines)) <= columns
    assert not re.search("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e…]", plain(shown))
    if columns == 60 and verb[0] != "search":
        joined = "".join(line.rstrip() for line in lines).replace(" ", "")
        assert all(text.replace(" ", "") in joined for text in TEXTS[:-1])


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_reasons_fit_on_a_line_of_the_terminal(filled, columns):
    del filled
    words = "party algo click 安娜五月搬到奥斯陆"
    code, shown = Terminal("search", "--keyword", "--why", words, columns=columns).rest()
    lines = shown.splitlines()
    assert code == DONE
    assert len(lines) == 1 + 4
    assert max(map(display_width, lines)) <= columns
    assert max(map(display_width, lines)) > min(columns - 12, 110)


def test_colours_are_left_out_where_they_are_not_wanted(filled):
    del filled
    assert "\x1b[2m" in Terminal("list").rest()[1]
    assert "\x1b[3" not in Terminal("list", NO_COLOR="1").rest()[1]


def test_a_terminal_of_another_size_gets_another_table(filled):
    del filled
    widths = [
        max(map(display_width, plain(Terminal("list", columns=columns).rest()[1]).splitlines()))
        for columns in (50, 70, 110, 150)
    ]
    assert all(one < other for one, other in pairwise(widths))


def test_an_interrupt_ends_with_its_own_code(place):
    del place
    terminal = Terminal("add")
    terminal.until("Ctrl-D")
    time.sleep(0.3)  # a signal just before the read begins is looked at behind it, by any Python
    terminal.type("\x03")
    code, rest = terminal.rest()
    assert code == INTERRUPTED
    assert rest.endswith("mnemic: stopped\r\n")


def test_a_text_that_is_typed_ends_with_a_key(place):
    del place
    terminal = Terminal("add")
    terminal.until("Ctrl-D")
    terminal.type("Buy milk\n\x04")
    assert terminal.rest()[0] == DONE
    assert "Buy milk" in Terminal("list").rest()[1]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("text,user\n" + "".join(f"Memory {at},ana\n" for at in range(2000)))
    return str(path)


def imports(source, **options):
    return Terminal(
        "import", "--from", "csv", source, command=[sys.executable, "-c", DRAWING], **options
    )


def test_a_bar_is_drawn_on_one_line_of_the_terminal_which_ends_with_the_work(place, source):
    del place
    code, shown = imports(source, columns=60).rest()
    *bars, last, result, user, rest = re.split(r"\r\n|\r", shown)
    assert code == DONE
    assert all(re.fullmatch(r"\[#* *\] import: \d+( of 2000 \(\d+ %\))?", bar) for bar in bars[1:])
    assert last == f"[{'#' * 20}] import: 2000 of 2000 (100 %)"
    assert max(map(len, bars)) < 60
    assert result == "2000 memories: 2000 new, 0 changed, 0 unchanged"
    assert (user, rest) == ("      2000 of ana", "")


def test_a_pipe_gets_no_bar(place, source):
    del place
    command = [sys.executable, "-c", DRAWING, "import", "--from", "csv", source]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2000 memories: 2000 new")
    assert done.stderr == ""


def test_an_interrupted_import_keeps_what_was_stored_and_goes_on(place, source):
    terminal = imports(source)
    terminal.until("import: 512 of 2000")
    terminal.type("\x03")
    code, rest = terminal.rest()
    assert code == INTERRUPTED
    stored = int(re.search(r"mnemic: (\d+) memories were stored; the same command", rest)[1])
    assert rest.endswith("mnemic: stopped\r\n")
    assert "Traceback" not in rest
    with Memory(place, embedder=None) as memory:
        assert 512 <= stored <= memory.count(user_id="ana") < 2000
        kept = memory.count(user_id="ana")
    code, rest = imports(source).rest()
    assert code == DONE
    assert f"2000 memories: {2000 - kept} new, 0 changed, {kept} unchanged" in rest
    listed = subprocess.check_output([*COMMAND, "list", "--user", "ana"], text=True)
    contents = [line.split("\t")[0] for line in listed.splitlines()]
    assert sorted(contents) == sorted(f"Memory {at}" for at in range(2000))


@pytest.mark.parametrize(
    "verb", [["list"], ["list", "--json"], ["export"], ["export", "--to", "csv"], ["timeline"]]
)
def test_a_reader_that_has_seen_enough_is_no_error(place, verb):
    with Memory(place, embedder=None) as memory:
        memory.add_many(f"memory {number} " * 50 for number in range(200))
    process = subprocess.Popen([*COMMAND, *verb], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(30) == DONE
    assert process.stderr.read() == b""
    process.stderr.close()

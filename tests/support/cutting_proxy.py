"""A proxy before a PostgreSQL server, in this process, which cuts a connection when it is told."""

import socket
import threading
from contextlib import suppress
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

IDLE = b"Z\0\0\0\5I"
"""The message by which a server says that it waits, in no transaction."""


class Proxy:
    """Forwards connections on a port of 127.0.0.1 to a server; a context, which ends them all.

    Args:
        url: URL of a database of the server.

    Attributes:
        url: URL of the same database by way of the proxy.
        cuts: Number of connections cut.
    """

    def __init__(self, url):
        options = conninfo_to_dict(url)
        self._server = _address(options)
        self._listener = socket.create_server(("127.0.0.1", 0))
        place = {"host": "127.0.0.1", "port": self._listener.getsockname()[1]}
        plain = {"sslmode": "disable", "gssencmode": "disable"}  # its messages can be read
        self.url = f"postgresql:///?{urlencode({**options, **place, **plain})}"
        self.cuts = 0
        self._wanted = None
        self._lock = threading.Lock()
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, command):
        """Cut the next connection whose server completes a command, such as `INSERT 0 1`.

        The client does not hear of it.
        """
        self._wanted = "server", _completed(command), b""

    def cut_after_commit(self):
        """Cut the next connection that committed a write; the client does not hear of it."""
        self._wanted = "server", _completed("COMMIT"), b"INSERT 0 "

    def cut_before_commit(self):
        """Cut the next connection that is to commit a write; the server does not hear of it."""
        self._wanted = "client", b"COMMIT\0", b"INSERT 0 "

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self._sockets:
            _end(each)

    def _accept(self):
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                kind, place = self._server
                server = socket.socket(kind)
                server.connect(place)
                self._sockets += client, server
                heard = bytearray()
                for ends in ((client, server, "client"), (server, client, "server")):
                    arguments = *ends, heard
                    threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(self, source, target, sender, heard):
        """Forward one direction; `heard` is what the server has said in this transaction."""
        with suppress(OSError):  # the other direction has ended both
            before = b""
            while data := source.recv(1 << 16):
                if sender == "server":
                    heard += data
                if self._is_cut(sender, before, data, heard):
                    break
                if sender == "server" and IDLE in before + data:
                    del heard[: heard.rfind(IDLE) + len(IDLE)]
                before = (before + data)[-64:]
                target.sendall(data)
        _end(source)
        _end(target)

    def _is_cut(self, sender, before, data, heard):
        """Return whether a wanted message ends in what has just come."""
        with self._lock:
            if self._wanted is None:
                return False
            wanted_sender, marker, earlier = self._wanted
            ends_at = (before + data).rfind(marker) + len(marker)
            is_new = marker in before + data and ends_at > len(before)
            if sender != wanted_sender or not is_new or earlier not in heard:
                return False
            self._wanted = None
            self.cuts += 1
            return True


def _completed(command):
    """Return the message by which a server says that a command is complete."""
    tag = command.encode() + b"\0"
    return b"C" + (4 + len(tag)).to_bytes(4) + tag


def _address(options):
    host, port = options.get("host", "127.0.0.1"), int(options.get("port", 5432))
    if host.startswith("/"):
        return socket.AF_UNIX, f"{host}/.s.PGSQL.{port}"
    return socket.AF_INET, (host, port)


def _end(one):
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()

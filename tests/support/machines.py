"""Two machines on one cable: network namespaces that end with the processes that hold them."""

import os
import shutil
import subprocess
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.postgres_server import NOBODY


class Machine:
    """A network namespace with one end of the cable.

    Args:
        holder: Id of the process that holds it.
        address: Its address.
    """

    def __init__(self, holder, address):
        self.holder, self.address = holder, address
        self.before = "nsenter", "--target", str(holder), "--net"
        """The beginning of a command line that is to run in it."""
        self.before_as_nobody = *self.before, f"--setuid={NOBODY}", f"--setgid={NOBODY}"

    def run(self, *command):
        """Run a command in it."""
        subprocess.run([*self.before, *command], check=True, capture_output=True)


@contextmanager
def two_machines():
    """Make two namespaces and a cable between them, or skip the test."""
    if os.getuid() != 0:
        pytest.skip("only root may make network namespaces")
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    with ExitStack() as opened:
        holders = [opened.enter_context(_namespace()) for _ in range(2)]
        machines = [Machine(each, f"10.87.21.{at}") for at, each in enumerate(holders, 1)]
        cable = ["ip", "link", "add", "cable", "netns", str(holders[0]), "type", "veth"]
        made = subprocess.run(
            [*cable, "peer", "name", "cable", "netns", str(holders[1])],
            check=False,
            capture_output=True,
            text=True,
        )
        if made.returncode:
            pytest.skip(f"no cable can be made: {made.stderr.strip()}")
        for machine in machines:
            machine.run("ip", "address", "add", f"{machine.address}/24", "dev", "cable")
            machine.run("ip", "link", "set", "cable", "up")
            machine.run("ip", "link", "set", "lo", "up")
        yield machines


@contextmanager
def _namespace():
    """Run a process in a new namespace until the end; return its id."""
    command = ["unshare", "--net", "sh", "-c", "echo made; exec cat"]  # ends with its input
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as holder:
        if holder.stdout.readline() != "made\n":
            pytest.skip(f"no network namespace can be made: {holder.stderr.read().strip()}")
        yield holder.pid

"""A sealed process for a student's code: bubblewrap around, plain JSON between.

Inside: no network, a read-only system without the course's files, a small /tmp, an
unprivileged user, bounds on time, memory, processes and files. Outside: every deadline
and every comparison.
"""

import contextlib
import functools
import importlib.util
import json
import os
import platform
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from coursework.runner import MESSAGE
from coursework.seal import MACHINES

HERE = Path(__file__).parent
PYTHON = os.path.realpath(sys.executable)  # that of the environment is a link to it
INSIDE = ("__init__", "inside", "runner", "seal", "wire")
PRELOAD = ("torch", "numpy", "IPython.core.inputtransformer2")
GIB = 2**30
MEMORY = 2 * GIB  # of all processes of a notebook together
SCRATCH = 64 * 2**20
LIMITS = {
    "memory": 4 * GIB,  # address space; torch alone takes 0.7 GiB of it
    "seconds": 120,  # of processor time
    "processes": 32,
    "file_size": 16 * 2**20,
}
REPLY = 2**20  # bytes
START = 60  # seconds until torch is imported
WATCH = 0.05  # seconds between two looks at the memory
stopping = threading.Event()  # set while the sessions of all threads are to end


class Ended(Exception):
    """A notebook's process is over; ``status`` is timeout, killed or memory."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status = status


class Stopped(Exception):
    """The instructor does not want to wait: nothing is known of the notebook."""


class Garbled(Exception):
    """A reply that is no reply: oversized, or not the JSON that was asked for."""


class Sandbox:
    """One bubblewrap with torch imported, for one notebook after the other.

    Args:
        package: a folder with what of genaudit is shown, from ``shown_package``.
        preload: modules to import before the first notebook arrives.
        fork: fork each notebook off the imported process, sealed as a sandbox of its
            own; otherwise the sandbox serves a single notebook.
        sealed: false runs without bubblewrap, for one's own files alone.
    """

    def __init__(
        self,
        package: Path,
        preload: Sequence[str] = (),
        fork: bool = True,
        sealed: bool = True,
    ):
        self.fork = fork
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {
            "preload": [*PRELOAD, *preload],
            "once": not fork,
            "sealed": sealed,
            "scratch": SCRATCH,
            "limits": LIMITS,
        }
        with theirs:
            program = _program(settings, theirs.fileno(), package, sealed)
            self.process = subprocess.Popen(
                [*(command(package, fork) if sealed else []), *program],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=package.parent,
            )
        self.control = ours
        self.control.settimeout(START)
        if self._hear() != b"ready":
            said = self.process.communicate(timeout=START)[1].decode(errors="replace")
            self.close()
            raise OSError(f"the sandbox did not start: {said.strip()[-500:]}")
        # From here on it has nothing to say.
        self.process.stderr.close()

    def _hear(self) -> bytes:
        try:
            return self.control.recv(400)
        except OSError:
            return b""

    @contextlib.contextmanager
    def session(self) -> Iterator["Session"]:
        """A fresh process for one notebook, dead when the block is left."""
        hear, replies = os.pipe()
        requests, tell = os.pipe()
        try:
            socket.send_fds(self.control, [b"n"], [requests, replies])
        finally:
            os.close(requests)
            os.close(replies)
        try:
            said = self._hear() if self.fork else b"0"
            if not said.isdigit():
                raise OSError(f"no process was sealed off: {said.decode()}")
            yield Session(hear, tell, self.process.pid)
        finally:
            os.close(hear)
            os.close(tell)
            if self.fork:
                with contextlib.suppress(OSError):
                    self.control.send(b"e")
                    self._hear()
            else:
                self.close()

    def close(self) -> None:
        """Kill the sandbox and all that is in it."""
        self.process.kill()
        self.process.wait()
        self.control.close()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *error) -> None:
        self.close()


class Session:
    """The grader's end of the two pipes to one notebook's process."""

    def __init__(self, hear: int, tell: int, process: int):
        self.hear, self.tell, self.process = hear, tell, process
        self.left = b""
        self.looked = 0.0  # when its memory was last measured
        os.set_blocking(tell, False)

    def ask(self, seconds: float, **request) -> dict:
        """Send a request, and return the reply if it comes within ``seconds``.

        Ended if it does not, or if the process dies or outgrows its memory. Garbled if
        what comes is no JSON object or too long; the process must not be used again.
        """
        deadline = time.monotonic() + seconds
        message = json.dumps(request).encode() + b"\n"
        while message:
            self._wait([], [self.tell], deadline)
            try:
                message = message[os.write(self.tell, message) :]
            except BlockingIOError:  # the process may make its pipe smaller
                continue
            except BrokenPipeError:
                raise Ended("killed", "the notebook's process ended") from None
        while b"\n" not in self.left:
            self._wait([self.hear], [], deadline)
            part = os.read(self.hear, 1 << 16)
            if not part:
                raise Ended("killed", "the notebook's process ended")
            self.left += part
            if len(self.left) > REPLY:
                raise Garbled(f"the reply is longer than {REPLY:,} bytes")
        line, _, self.left = self.left.partition(b"\n")
        return _reply(line)

    def _wait(self, readable, writable, deadline: float) -> None:
        """Wait for a pipe; one that drips must not put off any limit."""
        ready = False
        while not ready:
            ready = any(select.select(readable, writable, [], WATCH))
            if stopping.is_set():
                raise Stopped
            if time.monotonic() > deadline:
                raise Ended("timeout", "no answer within the time allowed")
            if time.monotonic() > self.looked + WATCH:
                if _memory(self.process) > MEMORY:
                    raise Ended("memory", f"more than {MEMORY // GIB} GiB of memory")
                self.looked = time.monotonic()


def _reply(line: bytes) -> dict:
    """What a line says: nothing, a value, or an error in a few words."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        reply = None
    if isinstance(reply, dict):
        if reply.keys() <= {"value"}:
            return reply
        if "error" in reply and all(isinstance(text, str) for text in reply.values()):
            return {key: text[:MESSAGE] for key, text in reply.items()}
    raise Garbled("the reply is not what a function can return")


def _memory(process: int) -> int:
    """Bytes that the processes below ``process`` have for themselves."""
    total = 0
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(process).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                total += child.memory_info().rss - child.memory_info().shared
    return total


@functools.cache
def refusal() -> str:
    """Why no sandbox can be made on this machine; empty if it can."""
    if sys.platform != "linux":
        return "the sandbox needs Linux: use a Linux machine, a virtual one will do"
    if platform.machine() not in MACHINES:
        return f"the sandbox knows {' and '.join(MACHINES)}, not {platform.machine()}"
    if shutil.which("bwrap") is None:
        return "bubblewrap is missing: apt-get install bubblewrap, or your system's way"
    trial = [*_system(), "--", PYTHON, "-S", "-c", "print(6050)"]
    done = subprocess.run(trial, capture_output=True, text=True)
    if done.stdout.strip() != "6050":
        return (
            f"bubblewrap does not work here ({done.stderr.strip()[-200:]}): user "
            "namespaces may be switched off (sysctl kernel.unprivileged_userns_clone, "
            "or AppArmor's rule for bwrap)"
        )
    return ""


@functools.cache
def can_fork() -> bool:
    """Whether a process inside a sandbox may seal its children off; tried once."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Sandbox(Path(folder)) as sandbox, sandbox.session() as session:
                return session.ask(START, do="run", source="") == {}
        except (OSError, Ended, Garbled):
            return False


def command(package: Path, fork: bool) -> list[str]:
    """The call of bubblewrap, up to the program.

    To fork sealed processes takes a /proc, which those do not see; in a sandbox that
    serves one notebook it would lead to bubblewrap's own process.
    """
    files = [HERE / f"{name}.py" for name in INSIDE]
    return [
        *_system(),
        *(
            word
            for file in files
            for word in ("--ro-bind", str(file), f"/grader/coursework/{file.name}")
        ),
        *("--ro-bind", str(package), "/grader/genaudit"),
        *(("--proc", "/proc") if fork else ()),
        *("--remount-ro", "/", "--chdir", "/tmp", "--"),
    ]


def _system() -> list[str]:
    """Bubblewrap with a system to run Python in, and nothing else."""
    words = ["bwrap", "--die-with-parent", "--new-session", "--clearenv"]
    if os.getuid() == 0:
        # Root opens what the mounts need and the program then becomes nobody.
        words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
        words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID"]
        words += ["--cap-add", "CAP_SETGID"]
    else:
        words += ["--unshare-all", "--uid", "65534", "--gid", "65534"]
    for name, value in {
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }.items():
        words += ["--setenv", name, value]
    for link in ("/bin", "/lib", "/lib64", "/lib32", "/sbin"):
        if os.path.islink(link):
            words += ["--symlink", os.readlink(link), link]
        else:
            words += ["--ro-bind-try", link, link]
    # Folders above a mount would be root's alone.
    for folder in [*mounts().values(), "/etc/x", "/grader/coursework/x"]:
        for above in reversed(Path(folder).parents[:-1]):
            words += ["--perms", "0755", "--dir", str(above)]
    for folder, place in mounts().items():
        words += ["--ro-bind", folder, place]
    for name in ("genaudit", "coursework"):
        for place in _installed(name):
            words += ["--tmpfs", place]
    words += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    words += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
    words += ["--dev", "/dev", "--remount-ro", "/dev"]
    return [*words, "--perms", "1777", "--size", str(SCRATCH), "--tmpfs", "/tmp"]


def mounts() -> dict[str, str]:
    """Folders of this machine that students' code can read, and where it has them.

    Installed packages get a place of their own: an environment may lie anywhere, under
    /tmp too, which each notebook has for itself.
    """
    mounts = {"/usr": "/usr"}
    if not Path(sys.base_prefix).is_relative_to("/usr"):
        mounts[sys.base_prefix] = sys.base_prefix
    for number, folder in enumerate(_packages()):
        if not any(Path(folder).is_relative_to(known) for known in mounts):
            mounts[folder] = f"/packages/{number}"
    return mounts


def _place(path: str) -> str | None:
    """Where the sandbox has a file or folder of this machine, if it has it."""
    for folder, place in mounts().items():
        if Path(path).is_relative_to(folder):
            return str(Path(place) / Path(path).relative_to(folder))
    return None


def _packages() -> list[str]:
    """Folders of installed packages, a user's own among them."""
    return [place for place in sys.path if Path(place).name.endswith("-packages")]


def _installed(name: str) -> list[str]:
    """Where the sandbox would have a package that lies in a folder that is shown."""
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec else []
    return list(filter(None, map(_place, places)))


def _program(settings: dict, control: int, package: Path, sealed: bool) -> list[str]:
    """The call of Python for coursework.inside.

    Without ``site`` no file of the environment can add folders to the path.
    """
    if sealed:
        folders = ["/grader", *map(_place, _packages())]
    else:
        folders = [str(package.parent), str(HERE.parent), *_packages()]
    words = ["inside", json.dumps(settings), str(control)]
    program = (
        f"import sys, runpy; sys.path += {folders!r}; sys.argv = {words!r}; "
        "runpy.run_module('coursework.inside', run_name='__main__', alter_sys=True)"
    )
    return [PYTHON, "-S", "-c", program]

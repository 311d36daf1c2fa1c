"""Submissions that break rules or are broken, and what each of them must get.

A probe tries something that the sandbox must not allow. If it succeeds it says so by an
error that begins with BREACH; if it fails nothing is lost, and the answers count.
"""

import json
import textwrap
from dataclasses import dataclass

from tests.coursework.hostile.course import (
    ANSWERS,
    DOUBLE,
    FULL,
    SETUP,
    STUBS,
    TOTAL,
    WORD,
    notebook,
)

NONE = (0, 0, 0)
NO_DOUBLE = (0, 3, 1)
LARGE = "it needs too much memory"
LONG = "the reply is longer than 1,048,576 bytes"


@dataclass(frozen=True)
class Case:
    """A file as it is handed in, and the result that it must have."""

    name: str
    data: bytes
    status: str = "ok"
    earned: tuple[int, ...] = FULL
    problem: str | None = None  # what the result says of it; anything if None
    reason: str | None = None  # of the first check, if it fails


def cells(name: str, *sources: str, **expected) -> Case:
    """A notebook of these code cells after the setup."""
    text = json.dumps(notebook([SETUP, *sources]))
    return Case(name, text.encode(), **expected)


def more(name: str, *sources: str, **expected) -> Case:
    """A notebook with right answers, and more cells behind."""
    return cells(name, *ANSWERS, *sources, **expected)


def probe(name: str, body: str) -> Case:
    """Right answers, and an attempt in a cell; ``body`` returns what it got."""
    attempt = "def attempt():\n" + textwrap.indent(textwrap.dedent(body), "    ")
    report = 'got = attempt()\nif got:\n    raise RuntimeError(f"BREACH {got!r}")'
    return cells(name, *ANSWERS, TOOLS, f"{attempt}\n\n{report}", problem="")


def answers(
    name: str, returned: str, earned=NO_DOUBLE, first: str = "", **expected
) -> Case:
    """A notebook whose ``double`` returns an expression of x, right or not."""
    wrong = f"import numpy\n{first}\ndef double(x):\n    return {returned}"
    return cells(name, wrong, TOTAL, WORD, earned=earned, **expected)


def acts(name: str, body: str, status="ok", earned=NO_DOUBLE, **expected) -> Case:
    """A notebook whose ``double`` does something before it returns the right answer."""
    body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    act = (
        f"import os, time, threading, signal\ndef double(x):\n{body}\n    return 2 * x"
    )
    return cells(name, act, TOTAL, WORD, status=status, earned=earned, **expected)


# What lies outside is filled in for each run.
TOOLS = '''
TARGETS = {}
import ctypes, errno, os, signal, socket, sys, time

libc = ctypes.CDLL(None, use_errno=True)

def works(function, *arguments):
    """Whether it did not fail as the system makes things fail."""
    try:
        function(*arguments)
    except OSError:
        return False
    return True

def system(name, *arguments):
    """A function of the C library, whose failure is an OSError."""
    if getattr(libc, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)

def readable(path):
    """What a file holds, or a folder lists, if that can be read."""
    try:
        return os.listdir(path) if os.path.isdir(path) else open(path, "rb").read()
    except OSError:
        return None
'''

LOOPS = [
    more("a loop in a cell", "while True: pass", status="timeout"),
    acts("a loop in a function", "while True: pass", "timeout"),
    acts(
        "a loop that swallows every interrupt",
        """
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                while True: pass
            except BaseException:
                pass
        """,
        "timeout",
    ),
    more(
        "a loop in a thread",
        "import threading\ndef spin():\n    while True: pass\n"
        "threading.Thread(target=spin).start()",
    ),
    more(
        "a loop at the exit",
        "import atexit\ndef spin():\n    while True: pass\natexit.register(spin)",
    ),
    cells(
        "a cell that defines and hangs",
        f"{DOUBLE}\nwhile True: pass",
        TOTAL,
        WORD,
        status="timeout",
        earned=NO_DOUBLE,
    ),
    acts(
        "an error whose text never ends",
        """
        class Endless(Exception):
            def __str__(self):
                while True: pass
        raise Endless
        """,
        "timeout",
    ),
    acts(
        "a reply that drips",
        """
        while True:
            os.write(4, b" ")
            time.sleep(0.01)
        """,
        "timeout",
    ),
    more(
        "a thousand slow cells",
        *["import time\ntime.sleep(1)"] * 1000,
        status="timeout",
        earned=NONE,
    ),
    answers("endless recursion", "double(x)"),
]

MEMORY = [
    acts(
        "a list that grows",
        """
        kept = []
        while True:
            kept.append(bytearray(b"x") * 2**20)
        """,
        "memory",
    ),
    answers("a tensor of terabytes", "torch.empty(10**12).sum()", reason=LARGE),
    answers("a tensor that is not touched", "2 * x, torch.empty(2**30)", reason=LARGE),
    acts(
        "many small processes",
        """
        for _ in range(12):
            if os.fork() == 0:
                kept = bytearray(b"x") * (150 * 2**20)
                time.sleep(1000)
        time.sleep(1000)
        """,
        "memory",
    ),
    probe(
        "memory that no process has",
        """
        kept = []
        for number in range(2):
            if works(lambda: kept.append(os.memfd_create("hidden"))):
                os.write(kept[-1], b"x" * 2**23)  # could be repeated for ever
        return kept
        """,
    ),
    probe(
        "memory shared and put aside",
        """
        import mmap
        kept = []
        for file in (-1, os.open("/dev/zero", os.O_RDWR)):
            if works(lambda: kept.append(mmap.mmap(file, 2**23))):
                kept[-1][:] = b"x" * 2**23
                kept[-1].madvise(mmap.MADV_DONTNEED)
        return kept
        """,
    ),
    probe(
        "memory of the other kinds",
        """
        add_key = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
        return [
            works(system, "shmget", 0, 2**20, 0o1600),
            works(system, "msgget", 0, 0o1600),
            works(system, "syscall", add_key, b"user", b"hidden", b"x", 1, -3),
            works(system, "syscall", 425, 8, bytes(256)),  # io_uring_setup
        ].count(True)
        """,
    ),
]

FORKS = [
    more(
        "a fork bomb",
        "import os\nwhile True:\n    try:\n        os.fork()\n"
        "    except OSError:\n        pass",
        status="memory",
    ),
    more(
        "a daemon that outlives",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        "    if os.fork() == 0:\n        for fd in range(100):\n            try:\n"
        "                os.close(fd)\n            except OSError:\n"
        "                pass\n        time.sleep(10_000)\n    os._exit(0)",
    ),
    probe(
        "more processes than are allowed",
        """
        children = []
        try:
            while len(children) < 64:
                pid = os.posix_spawn("/usr/bin/sleep", ["sleep", "9999"], {})
                children.append(pid)
        except OSError:
            pass
        return len(children) if len(children) > 40 else None
        """,
    ),
]

FLOODS = [
    more("a flood on stdout", "for _ in range(100):\n    print('x' * 10**6)"),
    more(
        "a flood on stderr",
        "import os\nfor _ in range(100):\n    os.write(2, b'x' * 10**6)",
    ),
    answers("a giant list", "[0.5] * 10**6", reason=LONG),
    answers("a giant word", "'x' * 10**7", reason=LONG),
    acts("a giant error", "raise ValueError('x' * 10**7)"),
    more("a thousand errors", *["raise ValueError('x' * 10**4)"] * 1000),
    probe(
        "a full scratch",
        """
        try:
            for number in range(100_000):
                with open(f"/tmp/{number}", "wb") as file:
                    file.write(b"x" * 2**20)
        except OSError:
            pass
        return number if number > 64 else None
        """,
    ),
    probe(
        "a scratch full of empty files",
        """
        try:
            for number in range(5000):
                open(f"/tmp/{number}", "wb").close()
        except OSError:
            pass
        return number if number > 2000 else None
        """,
    ),
    probe(
        "one large file",
        """
        with open("/tmp/large", "wb") as file:
            try:
                written = os.write(file.fileno(), b"x" * 2**25)
            except OSError:
                return None
        return written if written > 2**24 else None
        """,
    ),
]


def kills(name: str, whom: str) -> Case:
    """``double`` kills others and itself."""
    act = f"try:\n    os.kill({whom}, 9)\nfinally:\n    os._exit(9)"
    return acts(name, act, "killed")


EXITS = [
    more("exit in a cell", "import sys\nsys.exit(0)"),
    acts("exit in a function", "raise SystemExit(0)"),
    more("a hard exit in a cell", "import os\nos._exit(0)", status="killed"),
    acts("a hard exit in a function", "os._exit(0)", "killed"),
    acts("its own death", "os.kill(os.getpid(), 9)\nos._exit(9)", "killed"),
    kills("death of the parent", "os.getppid()"),
    kills("death of the group", "0"),
    kills("death of all", "-1"),
    kills("death of the first", "1"),
    acts("a segmentation fault", "import ctypes\nctypes.string_at(0)", "killed"),
    acts("abort", "os.abort()", "killed"),
    acts("no more replies", "os.close(4)", "killed"),
    acts("no more requests", "os.close(3)", "killed"),
    more(
        "an error without a text",
        "class Mute(Exception):\n    def __str__(self):\n        raise KeyError\n"
        f"{DOUBLE}\nraise Mute",
    ),
]

NETWORK = [
    probe(
        "a connection to the grader's machine",
        """
        port = TARGETS["port"]
        return [
            address
            for address in ("127.0.0.1", "localhost", "::1")
            if works(socket.create_connection, (address, port), 1)
        ]
        """,
    ),
    probe(
        "a local socket of the grader's machine",
        """
        local = socket.socket(socket.AF_UNIX)
        return works(local.connect, TARGETS["socket"])
        """,
    ),
    probe(
        "names and addresses elsewhere",
        """
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        return [
            works(socket.getaddrinfo, "example.org", 80),
            works(socket.create_connection, ("192.0.2.1", 80), 1),
            works(datagram.sendto, b"x", ("192.0.2.1", 53)),
        ].count(True)
        """,
    ),
    probe(
        "a port of one's own",
        """
        server = socket.socket()
        server.bind(("0.0.0.0", TARGETS["port"]))  # free here: another network
        """,
    ),
    probe(
        "other networks than the internet's",
        """
        unix, inet, inet6 = 1, 2, 10
        return [
            family
            for family in range(64)
            if family not in (unix, inet, inet6)
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW)
            if works(socket.socket, family, kind)
        ]
        """,
    ),
]

WRITES = [
    probe(
        "writes wherever it can",
        """
        folders = {"/", "/usr", "/usr/lib", "/etc", "/dev", "/dev/shm", "/proc", "/var",
                   "/var/tmp", "/run", "/home", "/root", "/grader/coursework",
                   "/grader/genaudit", sys.prefix, os.path.dirname(os.__file__)}
        folders |= set(TARGETS["folders"])
        return [
            folder
            for folder in folders
            if works(lambda: open(os.path.join(folder, "planted"), "w").close())
        ]
        """,
    ),
    probe(
        "changes to the grader's own code",
        """
        import coursework.wire, torch
        files = [coursework.wire.__file__, torch.__file__, os.__file__, sys.executable]
        return [
            file
            for file in files
            if works(open, file, "r+b") or works(os.remove, file)
            or works(os.chmod, file, 0o777) or works(os.rename, file, "/tmp/x")
        ]
        """,
    ),
    probe(
        "links to what lies outside",
        """
        found = []
        for number, path in enumerate([*TARGETS["folders"], *TARGETS["files"]]):
            link = f"/tmp/link{number}"
            os.symlink(path, link)
            found.append(readable(link) is not None)
            found.append(works(open, os.path.join(link, "planted"), "w"))
            found.append(works(os.link, path, f"/tmp/hard{number}"))
        return any(found)
        """,
    ),
]

READS = [
    probe(
        "reads of all that is secret",
        """
        paths = [*TARGETS["folders"], *TARGETS["files"], "/etc/passwd", "/etc/shadow",
                 "/etc/hostname", "/sys", "/var", "/run", "/home", "/boot", "/mnt",
                 "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda"]
        return [path for path in paths if readable(path)]
        """,
    ),
    probe(
        "folders on the way to what is shown",
        """
        known = {"bin", "dev", "etc", "grader", "lib", "lib32", "lib64", "proc", "sbin",
                 "tmp", "usr"}
        shown = [sys.prefix, sys.base_prefix, *sys.path]
        known |= {path.split("/")[1] for path in shown if path.startswith("/")}
        strange = set(os.listdir("/")) - known
        for path in (sys.prefix, sys.base_prefix):
            while (above := os.path.dirname(path)) not in ("/", "/usr", "/usr/local"):
                strange |= {
                    name
                    for name in os.listdir(above)
                    if not any(p.startswith(os.path.join(above, name)) for p in shown)
                }
                path = above
        return strange | set(os.listdir("/tmp"))
        """,
    ),
    probe(
        "the environment",
        """
        texts = [repr(os.environ), repr(sys.argv), repr(sys.orig_argv)]
        for process in filter(str.isdigit, readable("/proc") or []):
            for file in ("environ", "cmdline", "mountinfo"):
                texts.append(repr(readable(f"/proc/{process}/{file}")))
        return [TARGETS["word"][::-1] in text for text in texts].count(True)
        """,
    ),
    probe(
        "files that are still open",
        """
        opened = [fd for fd in range(5, 5000) if works(os.fstat, fd)]
        names = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(5)
                 if os.path.exists(f"/proc/self/fd/{fd}")]
        return opened + [name for name in names if name[:5] not in ("/dev/", "pipe:")]
        """,
    ),
    probe(
        "other processes",
        """
        attach, read = 16, ctypes.create_string_buffer(8)
        mine = {os.getpid()}
        return [
            pid
            for pid in [os.getppid(), *range(1, 400)]
            if pid and pid not in mine
            and (works(system, "ptrace", attach, pid, 0, 0)
                 or works(open, f"/proc/{pid}/mem", "r+b"))
        ]
        """,
    ),
    acts(
        "a look at frames and objects",
        """
        import gc, importlib.util, sys
        frame, held = sys._getframe(), []
        while frame:
            held += frame.f_locals
            frame = frame.f_back
        held += [type(one).__module__ for one in gc.get_objects()]
        hidden = {f"coursework.{name}" for name in ("checks", "exam", "grade")}
        found = (hidden | {"expected", "verdict", "check", "secret"}) & set(held)
        found |= {name for name in hidden if importlib.util.find_spec(name)}
        assert not found
        """,
        earned=FULL,
    ),
    acts(
        "inputs told by an error",
        "raise ValueError(f'TOLD {x}')",
        reason="raised ValueError",
    ),
    acts(
        "inputs told by an error's name",
        "raise type(f'TOLD{x}', (Exception,), {})",
        reason="raised an error of its own",
    ),
]

ESCAPES = [
    probe(
        "a way to be root",
        """
        return [
            works(os.setuid, 0),
            works(os.setgid, 0),
            works(os.setgroups, [0]),
            works(os.chroot, "/tmp"),
            works(os.nice, -1),
            works(system, "mount", b"none", b"/tmp", b"tmpfs", 0, None),
            works(system, "umount2", b"/proc", 2),
            works(system, "umount2", b"/tmp", 2),
            works(system, "swapon", b"/tmp/x", 0),
            os.system("su -c true root </dev/null >/dev/null 2>&1") == 0,
        ].count(True)
        """,
    ),
    probe(
        "namespaces of its own",
        """
        flags = {"user": 0x10000000, "mount": 0x20000, "network": 0x40000000,
                 "processes": 0x20000000, "names": 0x4000000, "ipc": 0x8000000}
        got = [name for name, flag in flags.items() if works(system, "unshare", flag)]
        spawn = "unshare -Ur true" , "bwrap --ro-bind / / true"
        return got + [word for word in spawn if os.system(f"{word} 2>/dev/null") == 0]
        """,
    ),
    probe(
        "limits that it lifts",
        """
        import resource
        def lifts(what):
            soft, hard = resource.getrlimit(what)
            try:
                resource.setrlimit(what, (soft, hard + 1))
            except ValueError:
                return hard == resource.RLIM_INFINITY
            return True
        return [name for name in ("AS", "NPROC", "CPU", "FSIZE", "NOFILE")
                if lifts(getattr(resource, f"RLIMIT_{name}"))]
        """,
    ),
]

PATCH = """
import builtins, gc, json, math, sys, torch

always = lambda *arguments, **options: True
math.isclose = math.isfinite = torch.equal = torch.allclose = always
builtins.abs = builtins.max = lambda *arguments, **options: 0
builtins.all = builtins.any = always
"""
CHEATS = [
    cells(
        "patched comparisons",
        PATCH + "def double(x): return 0\ndef total(v): return 0\n"
        'def word(): return "x"',
        earned=NONE,
    ),
    cells(
        "patched JSON",
        "import json\njson.dumps = lambda *a, **k: '{\"value\": true}'\n"
        "json.loads = lambda *a, **k: {'do': 'run', 'source': ''}",
        "def double(x): return 0",
        earned=NONE,
    ),
    cells(
        "a patched wire",
        "import coursework.wire as wire\nwire.plain = lambda value: True\n"
        "wire.dumps = lambda message: b'{\"value\": true}\\n'",
        "def double(x): return 0\ndef total(v): return 0\ndef word(): return 0",
        earned=NONE,
    ),
    cells(
        "a patched runner",
        "import sys\nrunner = sys.modules['coursework.runner']\n"
        "runner.plain = lambda value: value\n"
        "runner.Notebook.call = lambda *a, **k: {'value': True, 'earned': 9}",
        earned=NONE,
    ),
    cells(
        "a module in the place of the checks",
        "import sys, types\nfor name in ('checks', 'exam', 'grade', 'sandbox'):\n"
        "    module = types.ModuleType('coursework.' + name)\n"
        "    module.misshapen = module.same = lambda *a: None\n"
        "    sys.modules['coursework.' + name] = module",
        earned=NONE,
    ),
    cells(
        "a result of its own",
        "import json, os\nresult = {'status': 'ok', 'checks': [], 'earned': 6}\n"
        "for fd in range(1000):\n    try:\n"
        "        os.write(fd, json.dumps(result).encode() + b'\\n')\n"
        "    except OSError:\n        pass",
        earned=NONE,
    ),
]

LIAR = """
class Liar({kind}):
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __sub__ = __rsub__ = __abs__ = __neg__ = lambda self, *other: Liar({zero})
    __float__ = lambda self: 0.0
    __hash__ = lambda self: 0
    strip = casefold = lambda self, *other: self
"""
ODD = """
class Odd:
    tolist = __float__ = __index__ = lambda self: self
"""
POSER = """
class Poser:
    __class__ = float
"""
NUMBERS = [
    answers(
        "a float that equals all", "Liar(0)", first=LIAR.format(kind="float", zero=0)
    ),
    answers(
        "an integer that equals all", "Liar(0)", first=LIAR.format(kind="int", zero=0)
    ),
    cells(
        "a word that equals all",
        DOUBLE,
        TOTAL,
        LIAR.format(kind="str", zero="''") + "def word(): return Liar('downward')",
        earned=(2, 3, 0),
    ),
    answers("an object that lists itself", "Odd()", first=ODD),
    answers(
        "an object that says it is a float", "Poser()", status="killed", first=POSER
    ),
    answers("not a number", "float('nan')"),
    answers("infinity", "float('inf')"),
    answers("a tensor with NaN", "torch.tensor(float('nan'))"),
    answers("a complex number", "complex(2 * x)"),
    answers("a complex tensor", "torch.tensor(complex(2 * x))"),
    answers("true", "True"),
    answers("a tensor of truth", "torch.tensor(True)"),
    answers("nothing", "None"),
    answers("a word for a number", "str(2 * x)"),
    answers("a dictionary", "{'value': 2 * x}"),
    answers("a list for a number", "[2 * x, 2 * x]"),
    answers("a list of one number", "[2 * x]", FULL),
    answers("a generator", "(2 * x for _ in range(1))"),
    answers("a huge integer", "10**5000"),
    answers("a large integer", "10**1000"),
    answers("a sparse tensor", "torch.tensor([2 * x]).to_sparse()"),
    answers("a tensor without numbers", "torch.empty((), device='meta')"),
    answers("a list in itself", "kept", first="kept = []\nkept.append(kept)"),
    answers(
        "a deep list",
        "kept",
        first="kept = []\nfor _ in range(10**5):\n    kept = [kept]",
    ),
    answers("a half", "torch.tensor(2 * x, dtype=torch.float16)", FULL),
    answers(
        "a half of the other kind", "torch.tensor(2 * x, dtype=torch.bfloat16)", FULL
    ),
    answers(
        "a tensor with a gradient", "torch.tensor(2 * x, requires_grad=True)", FULL
    ),
    answers("a number of numpy's", "numpy.float32(2 * x)", FULL),
    answers("an array without axes", "numpy.array(2 * x)", FULL),
    answers(
        "a float of its own kind", "Own(2 * x)", FULL, "class Own(float):\n    pass"
    ),
]


def forged(name: str, line: str, sound: bool = False) -> Case:
    """``double`` writes a reply by hand and ends.

    One that is ``sound`` is taken for a reply, and the end costs the next check; after
    another the process is not used again.
    """
    write = f"os.write(4, {line})\ntime.sleep(0.1)\nos._exit(0)"
    status, earned = ("killed", (0, 0, 1)) if sound else ("ok", NO_DOUBLE)
    return acts(name, write, status, earned)


FORGED = [
    more(
        "replies before the question",
        "import os\nos.write(4, b'{\"value\": 0}\\n' * 3)",
        earned=NONE,
    ),
    acts("a reply twice", "os.write(4, b'{\"value\": %d}\\n' % (2 * x))", earned=NONE),
    acts("half a reply", "os.write(4, b'{\"value\": ')\nos._exit(0)", "killed"),
    forged("a reply that is no JSON", "b'value: 1\\n'"),
    forged("a reply that is a list", "b'[1]\\n'"),
    forged("an empty line", "b'\\n'"),
    forged("a reply that is null", "b'null\\n'"),
    forged("a number of many digits", "b'{\"value\": ' + b'9' * 10**5 + b'}\\n'"),
    forged("brackets without end", "b'{\"value\": ' + b'[' * 10**5 + b'\\n'"),
    forged("an error that is a list", 'b\'{"error": [], "kind": []}\\n\''),
    forged("bytes that are no text", "b'\\xff\\xfe{\\x00\\n'"),
    forged("a bare NaN", "b'{\"value\": NaN}\\n'", sound=True),
    forged("a number beyond all", "b'{\"value\": 1e999}\\n'", sound=True),
    forged("an object for a value", 'b\'{"value": {"value": 1}}\\n\'', sound=True),
    forged("markup", 'b\'{"error": "x", "kind": "<b>"}\\n\'', sound=True),
    forged("half a letter", 'b\'{"error": "\\\\ud800"}\\n\'', sound=True),
    forged(
        "a giant error by hand",
        "b'{\"error\": \"' + b'x' * 900_000 + b'\"}\\n'",
        sound=True,
    ),
    more("half a letter in a cell", "raise ValueError('\\ud800')"),
    more(
        "a pipe of changing size",
        """
import fcntl, threading

def change():
    while True:
        for size in (8192, 4096):
            try:
                fcntl.fcntl(3, 1031, size)  # F_SETPIPE_SZ
            except OSError:
                pass

threading.Thread(target=change).start()
""",
        "# " + "x" * 500_000,
    ),
]

CELLS = [
    cells("an untouched notebook", *STUBS, earned=NONE, reason="still to be written"),
    cells("a deleted cell", TOTAL, WORD, earned=NO_DOUBLE),
    cells("no cell at all", earned=NONE),
    more("stubs behind the answers", *STUBS),
    more("stubs with other spaces behind", *[f"\n{stub}  \n" for stub in STUBS]),
    more("a worse answer behind", "def double(x): return x", earned=NO_DOUBLE),
    cells("cells in another order", WORD, "total_of = total", DOUBLE, TOTAL),
    cells(
        "a renamed function",
        "def twice(x): return 2 * x",
        TOTAL,
        WORD,
        earned=NO_DOUBLE,
    ),
    cells("no function of that name", "double = 2", TOTAL, WORD, earned=NO_DOUBLE),
    cells(
        "a cell that is no Python", "def double(x) 2 * x", TOTAL, WORD, earned=NO_DOUBLE
    ),
    cells("all in one cell", "\n".join(ANSWERS)),
    more(
        "shell magics",
        "!rm -rf / --no-preserve-root",
        "%%bash\nrm -rf /",
        "%pip install torch==0.1",
        "%matplotlib inline",
        "files = !ls /",
        "?double",
        "%load_ext autoreload\n%autoreload 2",
        problem="",
    ),
    cells("a timed cell", f"%%time\n!ls\n{DOUBLE}", TOTAL, f"%%capture out\n{WORD}"),
    cells(
        "a timed line",
        "%time scale = 2",
        "def double(x): return scale * x",
        TOTAL,
        WORD,
    ),
    more("a question to the user", "name = input('Your name? ')"),
    cells(
        "await at the top",
        "import asyncio\nawait asyncio.sleep(0)\n" + DOUBLE,
        TOTAL,
        "async def speak():\n    return 'upward'\nspoken = await speak()\n"
        "def word(): return spoken",
    ),
    more("its own interpreter", "get_ipython().kernel.do_shutdown(True)"),
    more(
        "a display",
        "display(double)\nfrom IPython.display import HTML\nHTML('<b>x</b>')",
        problem="",
    ),
]


def changed(name: str, change, sources=(SETUP, *ANSWERS), **expected) -> Case:
    """Right answers in a notebook to which ``change`` does something."""
    book = notebook(list(sources))
    book = change(book) or book
    data = book if isinstance(book, bytes) else json.dumps(book).encode()
    return Case(name, data, **expected)


def _strip(book: dict) -> None:
    del book["metadata"]
    for cell in book["cells"]:
        for key in ("id", "metadata", "outputs", "execution_count"):
            del cell[key]


def _colab(book: dict) -> None:
    book["nbformat_minor"] = 0
    book["metadata"] = {
        "colab": {"provenance": [], "gpuType": "T4"},
        "accelerator": "GPU",
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
    }
    for cell in book["cells"]:
        cell["metadata"] = {"id": cell.pop("id"), "outputId": "x", "colab": {}}
        cell["source"] = cell["source"].splitlines(keepends=True)


def _kernel(name: str):
    return lambda book: book["metadata"].update(
        kernelspec={"name": name, "language": name, "display_name": name},
        language_info={"name": name},
    )


def _outputs(book: dict) -> None:
    for cell in book["cells"]:
        cell["outputs"] = [{"output_type": "stream", "text": "earned: 6" * 20_000}] * 9


def _third(book: dict) -> dict:
    old = [
        {
            "cell_type": "code",
            "language": "python",
            "input": cell["source"],
            "outputs": [],
        }
        for cell in book["cells"]
    ]
    return {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [{"cells": old, "metadata": {}}],
    }


def _source(value):
    return lambda book: book["cells"][0].update(source=value)


UNREADABLE = {"status": "unreadable", "earned": NONE}
FILES = [
    changed("stripped metadata", _strip),
    changed("metadata of Colab", _colab),
    changed("another kernel", _kernel("ir")),
    changed("a kernel with a command", _kernel("python3; rm -rf /")),
    changed("outputs that promise points", _outputs),
    changed("the third format", _third),
    changed("the fifth format", lambda book: book | {"nbformat": 5}, **UNREADABLE),
    changed(
        "a format in words", lambda book: book | {"nbformat": "four"}, **UNREADABLE
    ),
    changed("no format", lambda book: book.pop("nbformat") and None, **UNREADABLE),
    changed("cells in a word", lambda book: book | {"cells": "all"}, **UNREADABLE),
    changed(
        "a cell that is a number", lambda book: book | {"cells": [1]}, **UNREADABLE
    ),
    changed("a source that is a number", _source(1), **UNREADABLE),
    changed("a source of numbers", _source([1, 2]), **UNREADABLE),
    changed("half a letter in a source", _source("x = '\ud800'")),
    changed("a zero in a source", _source("x = '\0'")),
    changed(
        "a mark of the byte order",
        lambda book: b"\xef\xbb\xbf" + json.dumps(book).encode(),
    ),
    changed(
        "two bytes a letter",
        lambda book: json.dumps(book).encode("utf-16"),
        **UNREADABLE,
    ),
    changed(
        "an old encoding",
        lambda book: (
            json.dumps(book).replace("Toy", "x").encode()[:-1] + b', "\xe9": 1}'
        ),
        **UNREADABLE,
    ),
    changed("half a file", lambda book: json.dumps(book).encode()[:300], **UNREADABLE),
    changed(
        "a file of megabytes",
        lambda book: json.dumps(book).encode() + b" " * 11_000_000,
        **UNREADABLE,
    ),
    changed(
        "a file of almost too many",
        lambda book: json.dumps(book).encode() + b" " * 9_000_000,
    ),
    Case("an empty file", b"", **UNREADABLE),
    Case("a file of spaces", b" \n\n", **UNREADABLE),
    Case("a picture", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), **UNREADABLE),
    Case("a list", b"[]", **UNREADABLE),
    Case("a number", b"1" * 10_000, **UNREADABLE),
    Case("a deep file", b"[" * 10**6, **UNREADABLE),
    Case("a page", b"<!doctype html><script>alert(1)</script>", **UNREADABLE),
    Case("a pickle", b"\x80\x04c__builtin__\nexit\n)R.", **UNREADABLE),
]

GROUPS = {
    "loops": LOOPS,
    "memory": MEMORY,
    "forks": FORKS,
    "floods": FLOODS,
    "exits": EXITS,
    "network": NETWORK,
    "writes": WRITES,
    "reads": READS,
    "escapes": ESCAPES,
    "cheats": CHEATS,
    "numbers": NUMBERS,
    "forged": FORGED,
    "cells": CELLS,
    "files": FILES,
}
GOOD = cells("an honest one", *ANSWERS, problem="")
# What the front of a file's name may be, and whose it is then.
NAMES = {
    "two\nlines": "twolines",
    "-rf": "-rf",
    "--help": "--help",
    "$(touch planted)": "$(touch planted)",
    "; rm -rf ..; '\"`": "; rm -rf ..; '\"`",
    "<script>alert(1)": "<script>alert(1)",
    "%s%n{0}": "%s%n{0}",
    "=1+1": "=1+1",
    "Ægir 名前 ☃": "Ægir 名前 ☃",
    "right\u202eto left": "rightto left",
    "con": "con",
    "x" * 240: "x" * 240,
}

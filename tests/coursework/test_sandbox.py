"""What a student's process can see and do, and how the grader hears from it."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import textwrap

import psutil
import pytest

from coursework import sandbox
from coursework.sandbox import Ended, Garbled, Sandbox, Session, Stopped
from coursework.shown import shown_package
from tests.coursework.small_course import needs_sandbox
from tests.guards.notebook import ROOT

NOBODY = 65534
MODES = ["forked", "fresh"]
SECONDS = 60  # never waited for

# A session, without a sandbox


@pytest.fixture
def line():
    """A session, and the far ends of its pipes: where requests arrive and replies go"""
    hear, reply = os.pipe()
    request, tell = os.pipe()
    ends = [hear, reply, request, tell]
    yield Session(hear, tell, os.getpid()), request, reply
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass


def asked(line, *replies, seconds=SECONDS):
    session, _, reply = line
    for part in replies:
        os.write(reply, part)
    return session.ask(seconds, do="run", source="1")


def test_a_request_is_one_line_of_json(line):
    session, request, reply = line
    os.write(reply, b'{"value": [1, 2.5, "up"]}\n')
    answer = session.ask(SECONDS, do="call", function="f", arguments=[[1.0]], seed=3)
    assert answer == {"value": [1, 2.5, "up"]}
    said = os.read(request, 1000)
    assert said.endswith(b"\n")
    expected = {"do": "call", "function": "f", "arguments": [[1.0]], "seed": 3}
    assert json.loads(said) == expected


def test_a_reply_may_come_in_pieces(line):
    assert asked(line, b'{"val', b'ue": 1', b"}\n{}\n") == {"value": 1}
    assert asked(line) == {}


def test_an_error_is_cut_to_a_few_words(line):
    text = "x" * 10_000
    said = asked(line, json.dumps({"kind": "raised", "error": text}).encode() + b"\n")
    assert said["kind"] == "raised"
    assert text.startswith(said["error"])
    assert len(said["error"]) < 1000


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"null",
        b"1",
        b"[]",
        b'"value"',
        b'{"value": 1',
        b"{'value': 1}",
        b'{"value": 1}{"value": 1}',
        b'{"values": 1}',
        b'{"value": 1, "error": "x"}',
        b'{"value": 1, "earned": 5}',
        b'{"error": 1}',
        b'{"error": ["x"]}',
        b'{"error": "x", "kind": []}',
        b'{"error": "x", "kind": {"a": 1}}',
        b'{"kind": "absent"}',
        b'{"value": \xff}',
        b'{"value": ' + b"9" * 5000 + b"}",
        b'{"value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"\x80\x04K\x01.",
    ],
    ids=range(20),
)
def test_a_reply_that_no_function_gives_is_refused(line, reply):
    session, request, far = line
    os.set_blocking(far, False)
    # A pipe holds less than the longest of these.
    session.left = reply + b"\n"
    with pytest.raises(Garbled, match="not what a function can return"):
        asked(line)


def test_a_reply_without_end_is_refused(line, monkeypatch):
    monkeypatch.setattr(sandbox, "REPLY", 1000)
    with pytest.raises(Garbled, match="longer than 1,000 bytes"):
        asked(line, b'"' * 1001)


def test_no_reply_in_time(line):
    with pytest.raises(Ended, match="no answer within the time") as ended:
        asked(line, b'{"value": 1}', seconds=0.1)
    assert ended.value.status == "timeout"


def test_nobody_reads_the_request(line):
    session, *_ = line
    with pytest.raises(Ended) as ended:
        session.ask(0.1, do="run", source="x" * 10_000_000)
    assert ended.value.status == "timeout"


@pytest.mark.parametrize("end", [1, 2])
def test_a_process_that_is_gone(line, end):
    os.close(line[end])
    with pytest.raises(Ended, match="process ended") as ended:
        if end == 2:
            os.close(line[0].tell)
            line[0].tell = os.open(os.devnull, os.O_WRONLY)
        asked(line)
    assert ended.value.status == "killed"


def test_too_much_memory_ends_it(line, monkeypatch):
    monkeypatch.setattr(sandbox, "_memory", lambda process: sandbox.MEMORY + 1)
    with pytest.raises(Ended, match="more than 2 GiB of memory") as ended:
        asked(line)
    assert ended.value.status == "memory"


def test_nobody_waits_when_the_grader_stops(line, monkeypatch):
    monkeypatch.setattr(sandbox.stopping, "is_set", lambda: True)
    with pytest.raises(Stopped):
        asked(line)


# Machines without a sandbox


def refusal(monkeypatch, path):
    monkeypatch.setenv("PATH", str(path))
    return sandbox.refusal.__wrapped__()


def test_without_bubblewrap_it_says_how_to_get_it(monkeypatch, tmp_path):
    said = refusal(monkeypatch, tmp_path)
    assert said.startswith("bubblewrap is missing: apt-get install bubblewrap")


def test_a_bubblewrap_that_fails_is_quoted(monkeypatch, tmp_path):
    script = tmp_path / "bwrap"
    script.write_text("#!/bin/sh\necho no permission to make a namespace >&2\nexit 1\n")
    script.chmod(0o755)
    said = refusal(monkeypatch, f"{tmp_path}:/usr/bin:/bin")
    assert said.startswith("bubblewrap does not work here (no permission to make")
    assert "kernel.unprivileged_userns_clone" in said


def test_another_system_is_told(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert sandbox.refusal.__wrapped__().startswith("the sandbox needs Linux")


# In the sandbox


class Probe:
    """Asks what a student's process sees."""

    def __init__(self, session):
        self.session = session

    def run(self, source):
        return self.session.ask(SECONDS, do="run", source=textwrap.dedent(source))

    def call(self, body, *arguments):
        """The reply of a function with this body."""
        body = textwrap.indent(textwrap.dedent(body).strip(), "    ")
        assert self.run(f"import os, sys\ndef probe(*a):\n{body}") == {}
        request = {"function": "probe", "arguments": list(arguments), "seed": 1}
        return self.session.ask(SECONDS, do="call", **request)

    def value(self, expression, *arguments):
        """The value of an expression of the arguments ``a``."""
        reply = self.call(f"return {expression}", *arguments)
        assert "value" in reply, reply
        return reply["value"]

    def fails(self, statement, *arguments):
        """The name of the exception that a statement raises."""
        reply = self.call(f"{statement}\nreturn 0", *arguments)
        return reply.get("error", "nothing: ").partition(":")[0]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "genaudit"
    return shown_package(folder, "gaussian_elbo", ())


def forking(package):
    """A sandbox that forks a process for each notebook."""
    if not sandbox.can_fork():
        pytest.skip("a process in the sandbox cannot seal off its children here")
    return Sandbox(package)


@pytest.fixture(scope="module")
def forked(package):
    with forking(package) as made, made.session() as session:
        yield Probe(session)


@pytest.fixture(scope="module")
def series(package):
    """A sandbox for one notebook after the other."""
    with forking(package) as made:
        yield made


@pytest.fixture(scope="module")
def fresh(package):
    with Sandbox(package, fork=False) as made, made.session() as session:
        yield Probe(session)


@pytest.fixture(params=MODES)
def inside(request):
    """A student's process, either way it can be made."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def another(package):
    """A process that may come to harm."""
    with Sandbox(package, fork=sandbox.can_fork()) as made, made.session() as session:
        yield Probe(session)


@needs_sandbox
def test_it_is_nobody_for_good(inside):
    assert inside.value("[os.getuid(), os.geteuid(), os.getgid()]") == [NOBODY] * 3
    assert set(inside.value("os.getgroups()")) <= {NOBODY}
    for call in ("setuid(0)", "setgid(0)", "setgroups([])", "chroot('/tmp')"):
        assert inside.fails(f"os.{call}") in ("PermissionError", "OSError")


@needs_sandbox
def test_it_has_no_privilege_and_gains_none(inside):
    capabilities = """
    import ctypes
    libc, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 6)()
    assert libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets) == 0
    return list(sets) + [libc.prctl(39, 0, 0, 0, 0)]
    """
    assert inside.call(capabilities) == {"value": [0] * 6 + [1]}


@needs_sandbox
def test_it_sees_the_system_and_nothing_else(inside):
    walk = """
    found = []
    for folder, folders, files in os.walk("/"):
        paths = {name: os.path.join(folder, name) for name in folders + files}
        folders[:] = [name for name in folders if paths[name] not in a]
        found += [paths[name] for name in files]
    return found
    """
    shown = [*sandbox.mounts().values(), "/dev", "/proc", "/tmp"]
    said = inside.call(walk, *shown)["value"]
    system = [path for path in said if path.startswith("/etc/")]
    assert all(path.startswith(("/etc/alternatives", "/etc/ld.so")) for path in system)
    ours = {path for path in said if path not in system}
    grader = {f"/grader/coursework/{name}.py" for name in sandbox.INSIDE}
    rooms = ["__init__", "exercises/__init__", "exercises/_say"]
    visible = {f"/grader/genaudit/{name}.py" for name in rooms}
    visible |= {"/grader/genaudit/exercises/gaussian_elbo.py"}
    assert ours == grader | visible | {"/grader/genaudit/book.mplstyle"}


@needs_sandbox
def test_it_sees_none_of_the_files_of_the_course(inside, tmp_path):
    secret = tmp_path / "course.key"
    secret.write_text("secret")
    for path in [secret, ROOT / "src", ROOT / "tests", *ROOT.glob("solutions")]:
        assert path.exists()
        assert not inside.value("os.path.exists(a[0])", str(path))
    for name in ("checks", "exam", "grade", "personal", "sandbox"):
        statement = f"import coursework.{name}"
        assert inside.fails(statement) == "ModuleNotFoundError"


@needs_sandbox
def test_of_the_book_it_can_use_the_visible_checks_alone(inside):
    assert inside.fails("import genaudit.exercises.gaussian_elbo") == "nothing"
    answer = "from genaudit.latent import GaussianModel\nGaussianModel(1.0)"
    assert inside.fails(answer) == "ImportError"
    assert inside.fails("import genaudit.report\ngenaudit.report.x()") == "ImportError"


@needs_sandbox
def test_it_can_write_to_its_tmp_alone(inside):
    folders = ["/", "/usr", "/dev", "/proc", "/grader", "/grader/genaudit", "/etc"]
    for folder in [*folders, *sandbox.mounts().values()]:
        said = inside.fails("open(a[0] + '/x', 'w')", folder)
        assert said in ("OSError", "PermissionError", "FileNotFoundError"), folder
    for name in sandbox.INSIDE:
        path = f"/grader/coursework/{name}.py"
        assert inside.fails("open(a[0], 'a')", path) in ("OSError", "PermissionError")
    assert inside.value("os.getcwd()") == "/tmp"
    assert inside.value("open('x', 'w').write('x')") == 1


@needs_sandbox
def test_its_tmp_is_small(inside):
    fill = """
    for number in range(20):
        with open(f"/tmp/fill{number}", "wb", buffering=0) as file:
            for _ in range(8):
                file.write(bytes(1 << 20))
    return 0
    """
    assert "No space left" in inside.call(fill)["error"]
    inside.run("import glob, os\nfor name in glob.glob('/tmp/fill*'): os.remove(name)")
    big = "open('/tmp/big', 'wb', buffering=0).write(bytes(40 << 20))"
    assert inside.value(big) == sandbox.LIMITS["file_size"]
    inside.run("os.remove('/tmp/big')")


@needs_sandbox
def test_it_has_no_network(inside):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        reach = "import socket\nsocket.create_connection((a[0], a[1]), 1)"
        assert inside.fails(reach, "127.0.0.1", port) in (
            "OSError",
            "ConnectionRefusedError",
        )
        # An address kept for documentation: nobody is disturbed if this fails.
        assert inside.fails(reach, "192.0.2.1", 80) == "OSError"


@needs_sandbox
def test_it_hears_no_socket_of_this_machine(inside):
    name = f"\0coursework-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen()
        reach = "import socket\nsocket.socket(socket.AF_UNIX).connect(a[0])"
        assert inside.fails(reach, name) == "ConnectionRefusedError"


@needs_sandbox
def test_it_sees_no_other_process(inside):
    listed = "[n for n in os.listdir('/proc') if n.isdigit()]"
    assert inside.value(f"{listed} if os.path.exists('/proc') else []") == []
    inside.run(
        """
        import os
        def _alive(pid):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return False
            except PermissionError:
                pass
            return True
        """
    )
    # Itself, and bubblewrap's own where nothing was forked.
    assert inside.value("[pid for pid in range(1, 5000) if _alive(pid)]") in (
        [1],
        [1, 2],
    )


@needs_sandbox
def test_two_notebooks_do_not_meet(forked, fresh):
    for one, other in [(forked, fresh), (fresh, forked)]:
        one.run("open('/tmp/note', 'w').write('the answer')")
        assert one.value("os.path.exists('/tmp/note')")
        assert not other.value("os.path.exists('/tmp/note')")
        one.run("import os; os.remove('/tmp/note')")


@needs_sandbox
def test_nothing_stays_for_the_next_notebook(package):
    with forking(package) as made:
        before = len(psutil.Process(made.process.pid).children(recursive=True))
        with made.session() as session:
            first = Probe(session)
            first.run("open('/tmp/note', 'w').write('the answer')")
            first.run("import builtins, torch\nbuiltins.note = torch.note = 1")
            first.run("import subprocess; subprocess.Popen(['sleep', '600'])")
            lone = (
                "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass"
            )
            first.run(lone)
            during = psutil.Process(made.process.pid).children(recursive=True)
            assert len(during) > before + 2
        with made.session() as session:
            second = Probe(session)
            assert second.value("os.listdir('/tmp')") == []
            assert not second.value("hasattr(__import__('builtins'), 'note')")
            assert not second.value("hasattr(__import__('torch'), 'note')")
        psutil.wait_procs(during[before:], timeout=SECONDS)
        after = psutil.Process(made.process.pid).children(recursive=True)
        assert len(after) == before
    assert not psutil.wait_procs(after, timeout=SECONDS)[1]


@needs_sandbox
def test_it_inherits_nothing(inside):
    names = {"HOME", "LANG", "LC_CTYPE", "MPLBACKEND", "OMP_NUM_THREADS", "PWD"}
    names |= {"PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"}
    added = {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR"}
    assert set(inside.value("list(os.environ)")) <= names | added
    inside.run(
        """
        import os
        def _open(number):
            try:
                return bool(os.fstat(number))
            except OSError:
                return False
        """
    )
    assert inside.value("[n for n in range(256) if _open(n)]") == [0, 1, 2, 3, 4]
    assert inside.value("sys.stdin.read() if sys.stdin else ''") == ""


@needs_sandbox
def test_its_limits_hold(inside):
    limits = """
    import resource
    names = ["AS", "CPU", "NPROC", "FSIZE", "NOFILE", "CORE"]
    found = [resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in names]
    assert all(soft == hard for soft, hard in found)
    return [hard for soft, hard in found]
    """
    expected = [*sandbox.LIMITS.values(), 64, 0]
    assert inside.call(limits) == {"value": expected}
    more = "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (1, 1))"
    assert inside.fails(more) == "ValueError"


@needs_sandbox
@pytest.mark.parametrize("allocate", ["bytearray(1 << 33)", "torch.ones(1 << 30)"])
def test_too_large_an_array_is_an_error_like_others(inside, allocate):
    reply = inside.call(f"import torch\n{allocate}\nreturn 0")
    assert reply["kind"] == "memory"
    assert inside.value("1") == 1


@needs_sandbox
def test_both_ways_give_the_same_notebook(forked, fresh):
    facts = """
    import locale, math, random, time
    import numpy, torch
    return [
        os.getcwd(), sys.path, sorted(os.environ), __name__,
        hash("hash"), sys.getrecursionlimit(), locale.getlocale(), time.tzname,
        random.random(), list(numpy.random.rand(3)), torch.rand(3),
        str(torch.get_default_dtype()), torch.get_num_threads(),
        str(torch.backends.mkldnn.is_available()), str(sys.flags),
        (torch.arange(1000.0).sin() @ torch.arange(1000.0).cos()).item(),
    ]
    """
    assert forked.call(facts) == fresh.call(facts)


ENDS = {
    "while True: pass": "timeout",
    "import time\ntime.sleep(600)": "timeout",
    "os._exit(0)": "killed",
    "os.abort()": "killed",
    "os.close(4)": "killed",
    "import ctypes\nctypes.string_at(0)": "killed",
}


@needs_sandbox
@pytest.mark.parametrize(("body", "status"), ENDS.items(), ids=range(len(ENDS)))
def test_an_end_has_a_status_and_the_next_notebook_runs(series, body, status):
    with series.session() as session:
        run = {"do": "run", "source": f"import os\n{body}"}
        with pytest.raises(Ended) as ended:
            session.ask(0.5 if status == "timeout" else SECONDS, **run)
        assert ended.value.status == status
    with series.session() as session:
        assert Probe(session).value("1") == 1


@needs_sandbox
@pytest.mark.parametrize("target", ["0", "-1", "1", "os.getpid()", "os.getppid()"])
def test_it_can_kill_nobody_but_itself(series, fresh, target):
    with series.session() as session, contextlib.suppress(Ended):
        session.ask(SECONDS, do="run", source=f"import os\nos.kill({target}, 9)")
    with series.session() as session:
        assert Probe(session).value("1") == 1
    assert fresh.value("1") == 1


@needs_sandbox
def test_memory_of_all_its_processes_counts(another, monkeypatch):
    already = sandbox._memory(another.session.process)
    monkeypatch.setattr(sandbox, "MEMORY", already + (200 << 20))
    with pytest.raises(Ended) as ended:
        another.run(
            """
            import os, time
            for _ in range(3):
                if os.fork() == 0:
                    kept = bytearray(os.urandom(1 << 20)) * 100
                    time.sleep(600)
            time.sleep(600)
            """
        )
    assert ended.value.status == "memory"


@needs_sandbox
def test_a_flood_of_numbers_is_cut(another):
    another.run("def f(): return [0.1] * 1_000_000")
    with pytest.raises(Garbled, match="the reply is longer than"):
        another.session.ask(SECONDS, do="call", function="f", arguments=[], seed=0)


@needs_sandbox
def test_what_it_prints_goes_nowhere(inside, capfd):
    inside.run(
        "print('x' * 10**6)\nimport os, sys\nos.write(2, b'x')\nsys.stderr.flush()"
    )
    inside.run("os.system('echo a child says something; echo more >&2')")
    assert inside.value("1") == 1
    assert capfd.readouterr() == ("", "")


@needs_sandbox
def test_a_closed_sandbox_leaves_no_process(package):
    with Sandbox(package, fork=sandbox.can_fork()) as made:
        processes = psutil.Process(made.process.pid).children(recursive=True)
        with made.session() as session:
            Probe(session).run("import subprocess; subprocess.Popen(['sleep', '600'])")
            processes += psutil.Process(made.process.pid).children(recursive=True)
            made.close()
    assert len(processes) > 2
    assert not psutil.wait_procs(processes, timeout=SECONDS)[1]


@needs_sandbox
def test_a_sandbox_that_cannot_start_says_why(package):
    with pytest.raises(OSError, match="No module named 'no_such_module'"):
        Sandbox(package, ["no_such_module"])


# An ordinary user owns the folders that bubblewrap makes, and must not fill them.
ORDINARY = """
import os
for folder in ("/", "/etc", "/grader", "/grader/coursework", "/dev"):
    try:
        open(os.path.join(folder, "x"), "w")
    except OSError:
        continue
    raise AssertionError(folder)
def f():
    return os.getuid(), os.listdir("/")
"""


@needs_sandbox
@pytest.mark.skipif(os.getuid() != 0, reason="all tests here are an ordinary user's")
def test_an_ordinary_user_gets_the_same(forked, package):
    become = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if subprocess.run([*become, "true"], capture_output=True).returncode:
        pytest.skip("unshare cannot make an ordinary user here")
    script = f"""
    import os
    from pathlib import Path
    from coursework.sandbox import Sandbox, can_fork, refusal
    assert os.getuid() == 1000
    assert not refusal() and can_fork()
    with Sandbox(Path({str(package)!r})) as made, made.session() as session:
        assert session.ask(60, do="run", source={ORDINARY!r}) == {{}}
        request = dict(do="call", function="f", arguments=[], seed=0)
        user, listing = session.ask(60, **request)["value"]
        print(user, *sorted(listing))
    """
    words = [*become, sys.executable, "-c", textwrap.dedent(script)]
    said = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    listing = forked.value("sorted(os.listdir('/'))")
    assert said.stdout.split() == [str(NOBODY), *listing], said.stderr


def test_files_of_ones_own_need_no_bubblewrap(package, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with Sandbox(package, fork=False, sealed=False) as made, made.session() as session:
        probe = Probe(session)
        assert probe.value("os.getuid()") == os.getuid()
        assert probe.value("os.path.exists(a[0])", str(ROOT / "exercises"))
        assert probe.fails("import genaudit.exercises.gaussian_elbo") == "nothing"
        answer = "from genaudit.latent import GaussianModel\nGaussianModel(1.0)"
        assert probe.fails(answer) == "ImportError"
        memory = "__import__('resource').getrlimit(9)[1]"
        assert probe.value(memory) == sandbox.LIMITS["memory"]
        with pytest.raises(Ended):
            session.ask(0.5, do="run", source="while True: pass")
    assert made.process.poll() is not None

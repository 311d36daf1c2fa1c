"""The first program inside the sandbox: imports torch, then forks for each notebook.

It runs no student's code itself. For each notebook it receives two pipes, forks, and
the child seals itself off before it reads the first cell.
"""

import contextlib
import importlib
import json
import os
import signal
import socket
import sys

from coursework import seal, wire


def main(settings: dict, control: socket.socket) -> None:
    """Serve until the grader closes the control socket."""
    if settings["sealed"]:
        seal.become_nobody()
    for name in settings["preload"]:
        importlib.import_module(name)
    control.send(b"ready")
    if settings["once"]:
        _, (requests, replies), *_ = socket.recv_fds(control, 1, 2)
        control.close()
        _serve(settings, requests, replies)
    while True:
        message, pipes, *_ = socket.recv_fds(control, 1, 2)
        if not message:
            return
        guard, said = _fork(settings, control, *pipes)
        for pipe in pipes:
            os.close(pipe)
        control.send(said or b"no word from the process")
        control.recv(1)  # the grader has done with it
        if said.isdigit():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(said), signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(guard, 0)
        control.send(b"done")


def _fork(settings, control, requests: int, replies: int) -> tuple[int, bytes]:
    """Start a sealed process: the number of its guard, and its own or what went wrong.

    The guard is the process between: only a child of it is in the new namespaces.
    """
    hear, tell = os.pipe()
    guard = os.fork()
    if guard:
        os.close(tell)
        said = os.read(hear, 400)
        os.close(hear)
        return guard, said
    try:
        control.close()
        os.close(hear)
        seal.new_namespaces()
        # Told only after the seal is shut, by the process that shut it.
        shut, sealed = os.pipe()
        first = os.fork()
        if first:
            for pipe in (sealed, requests, replies):
                os.close(pipe)
            said = os.read(shut, 400)
            os.write(tell, str(first).encode() if said == b"sealed" else said)
            os.close(tell)
            os.waitpid(first, 0)
            os._exit(0)
        tell = sealed
        seal.close_off(settings["scratch"])
        os.write(sealed, b"sealed")
        _serve(settings, requests, replies)
    except OSError as error:
        os.write(tell, str(error).encode()[:400])
    finally:
        os._exit(1)


def _serve(settings: dict, requests: int, replies: int) -> None:
    """Answer requests with nothing open but the two pipes; never returns."""
    from coursework.runner import Notebook

    os.dup2(requests, 3)
    os.dup2(replies, 4)
    os.closerange(5, 4096)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    seal.limit(**settings["limits"])
    if settings["sealed"]:
        seal.no_privileges()
        seal.refuse_calls()
        os.chdir("/tmp")
    notebook = Notebook()
    with os.fdopen(3, "rb") as lines:
        for line in lines:
            request = json.loads(line)
            answer = getattr(notebook, request.pop("do"))(**request)
            reply = wire.dumps(answer)
            while reply:
                reply = reply[os.write(4, reply) :]
    os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), socket.socket(fileno=int(sys.argv[2])))

"""Seal a forked process off: namespaces, an empty /tmp, limits, no way back.

The process it is forked from already lies in bubblewrap's sandbox. What this adds is
that two of its children are as far apart as two sandboxes: each has its own processes,
its own /tmp and its own network, which has no device.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
from pathlib import Path

NOBODY = 65534
_NEW = {
    "mount": 0x00020000,
    "names": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "processes": 0x20000000,
    "network": 0x40000000,
}
_NOSUID_NODEV = 2 | 4
_READ_ONLY = 1
_PRIVATE = 1 << 18 | 1 << 14
_SET_DUMPABLE, _SET_FILTER, _NO_NEW_PRIVILEGES = 4, 22, 38
_libc = ctypes.CDLL(None, use_errno=True)


def become_nobody() -> None:
    """Give up root for good, if this is root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        # The change of user hid /proc/self from its owner, who must write there.
        _call("prctl", _SET_DUMPABLE, 1, 0, 0, 0)


def new_namespaces() -> None:
    """Leave the namespaces of the parent; children are in a new one of processes."""
    user, group = os.getuid(), os.getgid()
    _call("unshare", sum(_NEW.values()))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def close_off(scratch: int) -> None:
    """In the first process of the new namespaces: own files, and no privilege left.

    ``scratch`` is the size of /tmp in bytes.
    """
    os.setsid()  # else a signal to its group reaches the parent
    _call("mount", None, b"/", None, _PRIVATE, None)
    size = f"size={scratch},nr_inodes=1000,mode=0700".encode()
    _call("mount", b"tmpfs", b"/tmp", b"tmpfs", _NOSUID_NODEV, size)
    # The /proc of the parent shows the parent's processes; an empty one shows none.
    _call("mount", b"tmpfs", b"/proc", b"tmpfs", _NOSUID_NODEV | _READ_ONLY, b"size=4k")
    no_privileges()


def no_privileges() -> None:
    """Drop every capability, and gain none by running a program."""
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


# What no exercise needs and no limit reaches: namespaces in which to be root, memory
# that is in no process, networks that have no namespace, and what others' are.
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # as the kernel calls them
_REFUSED = {  # numbers of system calls on the two
    "add_key": (248, 217),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "msgget": (68, 186),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "request_key": (249, 218),
    "setns": (308, 268),
    "shmget": (29, 194),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_ABSENT = (435, 435)  # clone3, whose flags cannot be seen: callers then use clone
_LOAD, _EQUAL, _ABOVE, _FROM, _ANY, _END = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
_ALLOW = (_END, 0, 0, 0x7FFF0000)
_REFUSE = (_END, 0, 0, 0x00050000 | errno.EPERM)
_REFUSED_IF = [  # a call whose argument of this number fulfils a test
    ((56, 220), 0, _ANY, sum(_NEW.values())),  # clone into a namespace
    ((9, 222), 3, _ANY, 1),  # mmap of shared memory
    ((41, 198), 0, _ABOVE, 10),  # socket of a family above IPv6
]


def refuse_calls() -> None:
    """Have the kernel refuse some system calls, to this process and its children.

    A filter is a program of (operation, steps if true, steps if false, operand).
    """
    machine = list(MACHINES).index(platform.machine())
    rules = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, MACHINES[platform.machine()]), _REFUSE]
    # Numbers above are another way to the same calls.
    rules += [(_LOAD, 0, 0, 0), (_FROM, 0, 1, 0x40000000), _REFUSE]
    for numbers in _REFUSED.values():
        rules += [(_EQUAL, 0, 1, numbers[machine]), _REFUSE]
    rules += [(_EQUAL, 0, 1, _ABSENT[machine]), (_END, 0, 0, 0x00050000 | errno.ENOSYS)]
    for numbers, argument, test, bound in _REFUSED_IF:
        rules += [(_EQUAL, 0, 4, numbers[machine]), (_LOAD, 0, 0, 16 + 8 * argument)]
        rules += [(test, 0, 1, bound), _REFUSE, _ALLOW]
    code = b"".join(struct.pack("HBBI", *rule) for rule in [*rules, _ALLOW])
    held = ctypes.create_string_buffer(code)
    program = struct.pack("HP", len(rules) + 1, ctypes.addressof(held))
    _call("prctl", _SET_FILTER, 2, program, 0, 0)


def limit(memory: int, seconds: int, processes: int, file_size: int) -> None:
    """Bounds for this process and its children; bytes and seconds of processor time."""
    for what, bound in {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_FSIZE: file_size,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }.items():
        resource.setrlimit(what, (bound, bound))


def _call(name: str, *arguments) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")

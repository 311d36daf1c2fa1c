"""Find what students handed in, and read their notebooks without running anything.

Whose file it is, is read from what students cannot choose: the folder that a course
system or the instructor made, else the front of the file's name, which the course
system wrote. These are known, as a folder, as a zip, or within one folder more:

- ``STUDENT_NAME.ipynb`` or ``STUDENT-NAME.ipynb``; a file of another name belongs to
  the student of that name, and a bare ``NAME.ipynb`` to the folder that it lies in;
- ``STUDENT/NAME.ipynb``, and nbgrader's ``submitted/STUDENT/NAME/NAME.ipynb``;
- Canvas: ``doejane_LATE_12345_678910_NAME-1.ipynb``, student 12345 and file 678910, or
  without names ``anon_1a2B3_678910_NAME.ipynb``;
- Moodle: ``Jane Doe_123456_assignsubmission_file_/NAME.ipynb``, or as a file with the
  notebook's name behind;
- any of these in a folder for each exercise.

NAME is an exercise's, at the end of a file's name, with or without the mark of another
copy, ``-1`` or ``(1)``. Failing that the notebook's heading tells, and last the folder.
Of several files for one exercise, one with its name comes before others, then the later
by Canvas's file numbers, then the higher copy. Two that still draw level are reported
rather than chosen between, unless they are the same byte by byte.
"""

import filecmp
import json
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat

LARGEST = 10_000_000  # bytes; a notebook with figures has about a tenth
MOST_CELLS = 2_000  # an exercise has some twenty
MOST_FILES = 50_000  # a thousand students with some ten files each stay below
# A zip may unpack to so many times its own size, within these bounds.
RATIO, ROOM = 100, (100_000_000, 4_000_000_000)
# What zipfile and zlib raise on a damaged archive.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)

# Moodle writes no underscore into a name, and Canvas no number between underscores, so
# the first number is theirs, whatever a student calls the file. A name may be empty.
MOODLE = re.compile(r"([^_]+)(?:_([0-9]+))?_assignsubmission_[a-z]+(?:_(.*))?")
CANVAS = re.compile(
    r".*?(?P<late>(?:^|_)LATE|_late)?"
    r"(?:_(?P<id>[0-9]+)|(?:^|_)(?P<anonymous>anon_[^\W_]+))"
    r"_(?:(?P<number>[0-9]{1,19})_(?P<rest>.+)|text\.html|link\.html)"
)
# Browsers and mail programs add an ending to what they take for text.
NOTEBOOK = re.compile(r"(.+)\.ipynb(?:\.txt|\.json)?", re.IGNORECASE)
# The last form is what Canvas writes when it has counted to seven.
COPIES = (
    r"(?P<copies>(?:-[0-9]{1,6}|\ ?\([0-9]{1,6}\)|-[0-9a-f]{8}(?:-[0-9a-f]{4,12}){4})*)"
)


@dataclass(frozen=True)
class Submission:
    """What a student handed in for an exercise.

    Args:
        student: the number that Canvas or Moodle gave, else a folder or a file's name;
            "" if that cannot be trusted.
        exercise: its name; "" if the file is for none that is known.
        path: the notebook; None if there is none that may be opened.
        late: whether Canvas says so.
        problem: why it cannot be read; "" and no path say that it is missing.
    """

    student: str
    exercise: str
    path: Path | None = None
    late: bool = False
    problem: str = ""


def find_submissions(
    path: Path,
    names: Iterable[str],
    scratch: Path,
    students: Iterable[str] | None = None,
    titles: Mapping[str, str] | None = None,
) -> list[Submission]:
    """Return every submission in a folder or a zip, sorted by student and exercise.

    A file that is no exercise's is reported with its student and a problem; what is no
    notebook is reported only if its student has none.

    Args:
        path: the folder or the zip, in one of the layouts above.
        names: of all exercises, so that a notebook of another one is known as such.
        scratch: a folder for what is unpacked; nothing is written elsewhere.
        students: ids of the class. Whoever has no file for an exercise that somebody
            handed in, or for the only one, is returned as missing.
        titles: the heading of each exercise's notebook, where it is not its name.
    """
    names, ids = list(names), {_clean(student): student for student in students or ()}
    exercises = _Exercises(names, titles or {})
    files = _in_folder(path) if path.is_dir() else _in_zip(path, scratch)
    files, home = _unwrapped(files, path, exercises, ids)
    claims = defaultdict(list)
    for file in sorted(files, key=lambda file: file.parts):
        claim = _claim(file, home, exercises)
        claims[claim.student].append(claim)
    due = {claim.exercise for several in claims.values() for claim in several} - {""}
    due = due or set(names if len(names) == 1 else ())
    found = [one for several in claims.values() for one in _settled(several, due)]
    have = {(one.student, one.exercise) for one in found}
    wanted = {(student, exercise) for student in ids for exercise in due}
    found += [Submission(*pair) for pair in wanted - have]
    found = [replace(one, student=ids.get(one.student, one.student)) for one in found]
    return sorted(found, key=lambda one: (one.student, one.exercise))


def read_cells(path: Path) -> list[str]:
    """Return the sources of a notebook's code cells; ValueError says why it cannot.

    Outputs, metadata and the kernel's name are not looked at.
    """
    return [source for kind, source in _cells(path) if kind == "code"]


# Reading a notebook


def _cells(path: Path) -> list[tuple[str, str]]:
    cells = _notebook(_text(path)).get("cells")
    if not isinstance(cells, list):
        raise ValueError("not a notebook: it has no list of cells")
    if len(cells) > MOST_CELLS:
        raise ValueError(f"{len(cells)} cells, more than {MOST_CELLS}")
    return [_cell(number, cell) for number, cell in enumerate(cells, 1)]


def _text(path: Path) -> str:
    try:
        about = path.lstat()
        reason = _strange(about.st_mode) or _too_large(about.st_size)
        if reason:
            raise ValueError(reason)
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("the text is UTF-16, and a notebook is UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text, at byte {error.start}") from None
    if not text.strip():
        raise ValueError("the file is empty")
    return text


def _notebook(text: str) -> Mapping:
    """Parse a notebook of any format that nbformat can bring to the fourth.

    The fourth is taken as it is: what nbformat asks of it beyond sources, such as
    metadata in every cell, is nothing that a student's code needs.
    """
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}, in line {error.lineno}") from None
    except RecursionError:
        raise ValueError("nested too deeply for a notebook") from None
    except ValueError:
        raise ValueError("not a notebook: a number has too many digits") from None
    version = notebook.get("nbformat") if isinstance(notebook, dict) else None
    if type(version) is not int:
        raise ValueError("JSON, but not a notebook: it does not name its nbformat")
    if version == nbformat.current_nbformat:
        return notebook
    if version not in nbformat.versions:
        raise ValueError(f"nbformat {version} is unknown; 4 is in use")
    try:
        old = nbformat.reader.reads(text)
        return nbformat.convert(old, nbformat.current_nbformat)
    except Exception as error:  # whatever a malformed one makes the conversion trip on
        kind = type(error).__name__
        raise ValueError(f"nbformat {version} cannot be converted: {kind}") from None


def _cell(number: int, cell) -> tuple[str, str]:
    if not isinstance(cell, dict):
        raise ValueError(f"cell {number} is not a cell")
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise ValueError(f"the source of cell {number} is not text")
    # Half a surrogate pair is legal in JSON, but is not UTF-8 and not Python.
    text = "".join(lines).encode(errors="replace").decode()
    return str(cell.get("cell_type")), text


def _heading(path: Path) -> str:
    """The heading that the first Markdown cell begins with, or ""."""
    text = next((source for kind, source in _cells(path) if kind == "markdown"), "")
    line = next(iter(text.strip().splitlines()), "")
    return line if line.startswith("#") else ""


def _strange(mode: int) -> str:
    """Say what a file is, if it is not regular; a zip may leave the kind out."""
    if stat.S_ISLNK(mode):
        return "a symbolic link, which is not followed"
    return "" if stat.S_IFMT(mode) in (0, stat.S_IFREG) else "not a regular file"


def _too_large(size: int) -> str:
    limit = LARGEST / 1e6
    return f"{size / 1e6:.1f} MB, more than {limit:.0f} MB" if size > LARGEST else ""


# Finding the files


@dataclass(frozen=True)
class _File:
    """Where a file lay, empty if that cannot be trusted, and what may be opened."""

    parts: tuple[str, ...]
    path: Path | None
    problem: str = ""


def _in_folder(root: Path) -> list[_File]:
    """All files below ``root``. No link is followed, and nothing is opened."""
    files, folders = [], [root]
    while folders:
        folder = folders.pop()
        parts = _parts(folder.relative_to(root).as_posix())
        try:
            children = [(path, path.lstat().st_mode) for path in folder.iterdir()]
        except OSError as error:
            problem = f"cannot be read: {error.strerror}"
            if folder == root:
                raise ValueError(f"{root} {problem}") from None
            files.append(_File((*parts, ""), None, problem))
            continue
        for path, mode in children:
            if _is_litter(path.name):
                continue
            if stat.S_ISDIR(mode):
                folders.append(path)
                continue
            problem = _strange(mode)
            name = parts + _parts(path.name)
            files.append(_File(name, None if problem else path, problem))
        if len(files) + len(folders) > MOST_FILES:
            raise ValueError(f"{root}: more than {MOST_FILES} files")
    return files


def _in_zip(archive: Path, scratch: Path) -> list[_File]:
    """Unpack a zip's notebooks to numbered files, so that no name in it matters."""
    if not archive.exists():
        raise ValueError(f"{archive}: no such folder or zip")
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        bundle = zipfile.ZipFile(archive)
    except DAMAGE:
        raise ValueError(f"{archive}: neither a folder nor a readable zip") from None
    with bundle:
        entries = bundle.infolist()
        if len(entries) > MOST_FILES:
            raise ValueError(f"{archive}: more than {MOST_FILES} files")
        room = min(max(ROOM[0], RATIO * archive.stat().st_size), ROOM[1])
        files = []
        for number, entry in enumerate(entries):
            name = _entry_name(entry)
            parts = _parts(name)
            if name.endswith(("/", "\\")) or any(map(_is_litter, parts)):
                continue
            distrust = _distrust(name)
            target, problem = None, distrust or _refusal(entry, room)
            if not problem and _stem("".join(parts[-1:])):
                target = scratch / f"{number:05}.ipynb"
                room -= entry.file_size
                problem = _unpack(bundle, entry, target)
            path = None if problem else target
            files.append(_File(() if distrust else parts, path, problem))
    return files


def _entry_name(entry: zipfile.ZipInfo) -> str:
    """The name in Unicode: many programs, Canvas too, write UTF-8 and do not say so."""
    if entry.flag_bits & 0x800:
        return entry.filename
    try:
        return entry.filename.encode("cp437").decode()
    except UnicodeError:
        return entry.filename


def _distrust(name: str) -> str:
    """Say why a name in a zip is none that a course system writes, if it is not."""
    parts = re.split(r"[\\/]", name)
    if not parts[0] or ".." in parts or re.match("[A-Za-z]:", name):
        return f"{_quoted(name)} names a place outside the zip"
    if max(map(len, parts)) > 255:
        return f"{_quoted(name)} is too long for the name of a file"
    return ""


def _refusal(entry: zipfile.ZipInfo, room: int) -> str:
    """Say why an entry is not unpacked, if it must not be."""
    if entry.flag_bits & 1:
        return "encrypted in the zip"
    # Only these unpack piece by piece, within a bound on memory.
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "packed in the zip by an unusual method"
    problem = _strange(entry.external_attr >> 16) or _too_large(entry.file_size)
    if not problem and entry.file_size > room:
        problem = "the zip unpacks to too much, like a zip bomb"
    return problem


def _unpack(bundle: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> str:
    try:
        with bundle.open(entry) as packed:
            data = packed.read(LARGEST)  # zipfile also stops at the declared size
    except DAMAGE:
        return "damaged in the zip"
    target.write_bytes(data)
    return ""


def _is_litter(name: str) -> bool:
    """Checkpoints, macOS's shadow files and the like, which nobody handed in."""
    return name.startswith(".") or name == "__MACOSX"


def _parts(name: str) -> tuple[str, ...]:
    """Folders and file of a path, whose separator may be that of Windows."""
    parts = re.split(r"[\\/]", name)
    return tuple(_clean(part) for part in parts if part not in ("", ".", ".."))


def _clean(text: str) -> str:
    """Text that can be shown and stored: composed, without invisible characters."""
    bad = {"Cc", "Cf", "Cs"}
    text = unicodedata.normalize("NFC", text)
    text = "".join(sign for sign in text if unicodedata.category(sign) not in bad)
    return text.strip() or "unnamed"


def _quoted(name: str) -> str:
    name = _clean(name)
    return f"'{name}'" if len(name) <= 80 else f"'{name[:38]}...{name[-38:]}'"


# Whose they are, and for which exercise


class _Exercises:
    """Knows an exercise by name, in a heading, of a folder or at a file name's end."""

    def __init__(self, names: Iterable[str], titles: Mapping[str, str]):
        self.known = {_slug(title): name for name, title in titles.items()}
        self.known |= {_slug(name): name for name in names}
        self.known.pop("", None)
        words = [r"[\W_]+".join(map(re.escape, key.split("_"))) for key in self.known]
        self.ending = re.compile(
            rf"(?:(?P<student>.*?)[-_\ ])??(?P<exercise>{'|'.join(words)}){COPIES}",
            re.IGNORECASE,
        )

    def named(self, text: str) -> str:
        """Return the exercise that is named so, or ""."""
        return self.known.get(_slug(text), "")

    def split(self, stem: str) -> tuple[str, str, float]:
        """Return the student, exercise and copy in a file's name, as far as it says."""
        match = self.ending.fullmatch(stem)
        if not match:
            return "", "", 0
        copies = re.findall(r"[0-9a-f]+", match["copies"].lower()) or ["0"]
        copy = float("inf") if len(copies[-1]) == 12 else int(copies[-1])
        student = (match["student"] or "").rstrip("-_ ")
        return student, self.named(match["exercise"]), copy


def _slug(text: str) -> str:
    return "_".join(re.findall(r"[^\W_]+", text.casefold()))


def _stem(name: str) -> str:
    """A notebook's name without its ending; "" if it is none."""
    match = NOTEBOOK.fullmatch(name)
    return match[1] if match else ""


def _unwrapped(
    files: list[_File], path: Path, exercises: _Exercises, students: Iterable[str]
) -> tuple[list[_File], str]:
    """Take away folders around all submissions; also return the last one's name."""
    home = _clean(path.resolve().stem if path.is_file() else path.resolve().name)
    for _ in range(3):
        tops = {file.parts[0] for file in files if len(file.parts) > 1}
        if home == "submitted":
            break
        if "submitted" in tops:
            home = "submitted"
            files = [file for file in files if file.parts[:1] in [(), (home,)]]
        elif len(tops) == 1 and _is_wrapper(*tops, files, exercises, students):
            (home,) = tops
        else:
            break
        files = [
            replace(file, parts=file.parts[1:]) if file.parts[:1] == (home,) else file
            for file in files
        ]
    return files, home


def _is_wrapper(
    folder: str, files: list[_File], exercises: _Exercises, students: Iterable[str]
) -> bool:
    """Whether the only folder is not a student's own, nor an exercise's."""
    if MOODLE.fullmatch(folder) or exercises.named(folder) or folder in students:
        return False
    if any(len(file.parts) == 1 and _stem(file.parts[0]) for file in files):
        return False
    inner = [file.parts[1:] for file in files if len(file.parts) > 1]
    deeper = {parts[0] for parts in inner if len(parts) > 1}
    flat = [parts[0] for parts in inner if len(parts) == 1]
    return (
        not all(map(exercises.named, deeper))
        or any(MOODLE.fullmatch(name) or CANVAS.fullmatch(name) for name in flat)
        or len({exercises.split(_stem(name))[0] for name in flat} - {""}) > 1
    )


@dataclass(frozen=True)
class _Claim:
    """A file taken for a submission, and what decides between several."""

    student: str
    exercise: str
    file: _File
    late: bool
    rank: tuple[int, int, float]

    @property
    def label(self) -> str:
        return _quoted("/".join(self.file.parts))


def _claim(file: _File, home: str, exercises: _Exercises) -> _Claim:
    """Say whose a file is and for which exercise, "" where it does not tell."""
    *folders, name = file.parts or ("",)
    holder = next(filter(None, map(exercises.named, reversed(folders))), "")
    while folders and exercises.named(folders[0]):
        del folders[0]
    student, late, number, name = _owner(folders, name)
    stem = _stem(name)
    author, exercise, copy = exercises.split(stem)
    if stem and not student:
        student = author or (home if exercise else stem)
    how = 2
    if stem and not exercise:
        exercise, problem = _by_heading(file, exercises)
        how = 1 if exercise else 0
        exercise = exercise or holder
        file = file if exercise else replace(file, path=None, problem=problem)
    elif name.lower().endswith(".zip"):
        file = replace(file, path=None, problem="a zip where a notebook is needed")
    return _Claim(student, exercise, file, late, (how, number, copy))


def _owner(folders: Sequence[str], name: str) -> tuple[str, bool, int, str]:
    """Student, lateness, Canvas's number and own name of a file, "" if unsaid."""
    if folders:
        moodle = MOODLE.fullmatch(folders[0])
        return (moodle[2] or moodle[1] if moodle else folders[0]), False, 0, name
    if moodle := MOODLE.fullmatch(name):
        return moodle[2] or moodle[1], False, 0, moodle[3] or ""
    if canvas := CANVAS.fullmatch(name):
        student = canvas["id"] or canvas["anonymous"]
        number = int(canvas["number"] or 0)
        return student, bool(canvas["late"]), number, canvas["rest"] or ""
    return "", False, 0, name


def _by_heading(file: _File, exercises: _Exercises) -> tuple[str, str]:
    """The exercise in a notebook's heading, or why it has none."""
    if not file.path:
        return "", file.problem
    try:
        exercise = exercises.named(_heading(file.path))
    except ValueError as error:
        return "", f"not named after an exercise, and {error}"
    return exercise, "neither its name nor its heading is an exercise's"


def _settled(claims: list[_Claim], due: set[str]) -> list[Submission]:
    """One submission for each exercise of a student, and one for all other files.

    If only one exercise is due and the student has nothing for it, the other files are
    what was handed in for it.
    """
    groups = defaultdict(list)
    for claim in claims:
        groups[claim.exercise].append(claim)
    others = groups.pop("", [])
    settled = [_newest(group) for group in groups.values()]
    student = claims[0].student
    odd = [claim for claim in others if claim.file.problem]
    if not settled and not odd and student:
        odd = others
    if odd:
        exercise = min(due) if student and len(due) == 1 and not settled else ""
        reasons = [f"{one.label}: {one.file.problem or 'no notebook'}" for one in odd]
        rest = [f"and {len(odd) - 3} more"] if len(odd) > 3 else []
        problem = "; ".join(reasons[:3] + rest)
        late = any(claim.late for claim in odd)
        settled.append(Submission(student, exercise, None, late, problem))
    return settled


def _newest(claims: list[_Claim]) -> Submission:
    """The claim of the highest rank, whether it can be read or not."""
    top = max(claim.rank for claim in claims)
    first, *others = [claim for claim in claims if claim.rank == top]
    path, problem = first.file.path, first.file.problem
    for other in others:
        if not _same(path, other.file.path):
            path = None
            problem = f"{first.label} and {other.label} are for one exercise; keep one"
            break
    return Submission(first.student, first.exercise, path, first.late, problem)


def _same(one: Path | None, other: Path | None) -> bool:
    try:
        return bool(one and other) and filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False

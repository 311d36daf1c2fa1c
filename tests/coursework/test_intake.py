"""What is handed in is found, whoever packed it, and read without running anything."""

import json
import os
import random
import socket
import stat
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coursework import intake
from coursework.intake import Submission, find_submissions, read_cells

NAMES = ["gaussian_elbo", "beta_vae", "vae"]
TITLES = {"gaussian_elbo": "The Gaussian ELBO", "vae": "?"}
FIRST = "gaussian_elbo.ipynb"


def notebook(mark: str = "", heading: str = "", **more) -> str:
    cells = [{"cell_type": "markdown", "source": heading}] if heading else []
    cells.append({"cell_type": "code", "source": f"x = {mark!r}"})
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "cells": cells} | more)


def folder_of(files: dict[str, str], root: Path) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def zip_of(files: dict[str, str], path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
    return path


@pytest.fixture(params=["folder", "zip"])
def hand_in(request, tmp_path):
    """Hand in files as a folder or as a zip; return what is found, by its content."""

    def find(files, students=None, names=NAMES, home="handed"):
        if request.param == "folder":
            path = folder_of(files, tmp_path / home)
        else:
            path = zip_of(files, tmp_path / f"{home}.zip")
        return find_submissions(path, names, tmp_path / "scratch", students, TITLES)

    return find


def told(found: list[Submission]) -> list[tuple]:
    """Student, exercise and lateness of each, and the mark in its notebook."""
    return [
        (one.student, one.exercise, one.late, mark_in(one.path) if one.path else None)
        for one in found
    ]


def mark_in(path: Path) -> str:
    (source,) = read_cells(path)
    return source.removeprefix("x = ").strip("'")


def only(found: list[Submission]) -> Submission:
    (one,) = found
    return one


# Whose is it, and what for

# NAME stands for gaussian_elbo, assigned for what Moodle puts between.
LAYOUTS = [
    ("doe_NAME.ipynb", "doe", False),
    ("doe-NAME.ipynb", "doe", False),
    ("doe-r_x - NAME.ipynb", "doe-r_x", False),
    ("NAME.ipynb", "handed", False),
    ("doe_NAME (2).ipynb", "doe", False),
    ("doe_NAME.ipynb.txt", "doe", False),
    ("doe_Gaussian-ELBO.IPYNB", "doe", False),
    ("doe/NAME.ipynb", "doe", False),
    ("doe/roe_NAME.ipynb", "doe", False),
    ("doe/NAME/NAME.ipynb", "doe", False),
    ("doe/NAME/Untitled.ipynb", "doe", False),
    ("submitted/doe/NAME/NAME.ipynb", "doe", False),
    ("doejane_12345_678910_NAME.ipynb", "12345", False),
    ("doejane_LATE_12345_678910_NAME-1.ipynb", "12345", True),
    ("doejane_late_12345_678910_NAME.ipynb", "12345", True),
    ("late_12345_678910_NAME.ipynb", "12345", False),
    ("_12345_678910_NAME.ipynb", "12345", False),
    ("von_dœ_7_x_12345_678910_NAME.ipynb", "12345", False),
    ("anon_1a2B3_678910_NAME.ipynb", "anon_1a2B3", False),
    ("LATE_anon_1a2B3_678910_NAME.ipynb", "anon_1a2B3", True),
    ("Jane Doe_123456_assigned_/NAME.ipynb", "123456", False),
    ("Doe, Jane-7_123456_assigned/NAME.ipynb", "123456", False),
    ("Jane Doe_123456_assigned_NAME.ipynb", "123456", False),
    ("Participant_123456_assigned_/NAME.ipynb", "123456", False),
    ("Default group_assigned_/NAME.ipynb", "Default group", False),
    ("NAME/doejane_12345_678910_notebook.ipynb", "12345", False),
]


def spelled(name: str) -> str:
    name = name.replace("assigned", "assignsubmission_file")
    return name.replace("NAME", "gaussian_elbo")


@pytest.mark.parametrize("name, student, late", LAYOUTS)
def test_each_layout_tells_student_and_exercise(name, student, late, hand_in):
    name, expected = spelled(name), (student, "gaussian_elbo", late, "mine")
    assert told(hand_in({name: notebook("mine")})) == [expected]
    if student == "handed":
        return
    # So it does beside others, and with all of them in one more folder.
    others = ["roe_vae", "_3_4_beta_vae", "Al_5_assignsubmission_file_/vae"]
    files = {f"all/{other}.ipynb": notebook() for other in others}
    if name.startswith("submitted"):
        files = {}
    found = hand_in(files | {f"all/{name}": notebook("mine")}, home="outer")
    assert len(found) == len(files) + 1 and expected in told(found)


@pytest.mark.parametrize(
    "name",
    [
        "Jane Doe_1_assigned_/roe_2_3_NAME.ipynb",
        "Jane Doe_1_assigned_x_2_3_NAME.ipynb",
        "Jane Doe_1_assigned_Al_2_assigned_NAME.ipynb",
        "doejane_1_9_Al Roe_2_assigned_NAME.ipynb",
        "doejane_1_9_roeal_2_8_NAME.ipynb",
        "1/roeal_2_3_NAME.ipynb",
        "1/2_NAME.ipynb",
        "1/2/NAME.ipynb",
        "1/Al Roe_2_assigned_/NAME.ipynb",
        "submitted/1/2/NAME/NAME.ipynb",
    ],
)
def test_no_file_name_hands_in_for_somebody_else(name, hand_in):
    other = "submitted/5/vae.ipynb" if name.startswith("submitted") else "5/vae.ipynb"
    found = hand_in({spelled(name): notebook(), other: notebook()})
    assert [one.student for one in found] == ["1", "5"]


def test_an_exercise_at_the_end_of_a_longer_one_is_not_taken_for_it(hand_in):
    found = hand_in({"doe_beta_vae.ipynb": notebook(), "doe_vae.ipynb": notebook()})
    assert [one.exercise for one in found] == ["beta_vae", "vae"]


@pytest.mark.parametrize(
    "name", ["a1/Untitled.ipynb", "a1.ipynb", "x_1_2_nb-3.ipynb", "a1/hw.ipynb.json"]
)
def test_a_renamed_notebook_is_known_by_its_heading(name, hand_in):
    found = only(hand_in({name: notebook(heading="\n# The Gaussian ELBO\n\nText.")}))
    assert (found.exercise, found.problem) == ("gaussian_elbo", "")
    assert found.student in ("a1", "1")


def test_a_heading_may_be_the_name_but_prose_is_no_heading(hand_in):
    found = hand_in(
        {
            "a/x.ipynb": notebook(heading="# beta VAE"),
            "b/x.ipynb": notebook(heading="beta VAE"),
            "c/x.ipynb": notebook(heading="Hello\n\n# beta VAE"),
        },
        names=NAMES,
    )
    assert [one.problem == "" for one in found] == [True, False, False]


def test_a_notebook_of_no_exercise_is_reported(hand_in):
    found = hand_in(
        {
            "a/gaussian_elbo.ipynb": notebook(),
            "a/scratch.ipynb": notebook(heading="# Scratch"),
            "a/broken.ipynb": "{",
            "b/gaussian_elbo.ipynb": notebook(),
        }
    )
    stray = only([one for one in found if not one.exercise])
    assert (stray.student, stray.path) == ("a", None)
    assert "'a/scratch.ipynb': neither its name nor" in stray.problem
    assert (
        "'a/broken.ipynb': not named after an exercise, and not JSON" in stray.problem
    )


@pytest.mark.parametrize(
    "names",
    [
        ["hw/doe/gaussian_elbo.ipynb", "hw/roe/gaussian_elbo.ipynb"],
        ["hw/part 1/doe/gaussian_elbo.ipynb", "hw/part 1/roe/gaussian_elbo.ipynb"],
        ["hw/doe_gaussian_elbo.ipynb", "hw/roe_gaussian_elbo.ipynb"],
        ["hw/_1_2_gaussian_elbo.ipynb"],
        ["hw/Al_1_assignsubmission_file_gaussian_elbo.ipynb"],
    ],
)
def test_a_folder_that_holds_everything_is_nobody(names, hand_in):
    found = hand_in({name: notebook() for name in names} | {"more.zip": "", "a": ""})
    assert found[0].problem == "'more.zip': a zip where a notebook is needed"
    assert [one.student for one in found[1:]] in (["doe", "roe"], ["1"])


@pytest.mark.parametrize(
    "student, names",
    [
        ("doe", ["gaussian_elbo", "work", "doe_vae"]),
        ("doe", ["gaussian_elbo/a", "vae/1/x_1_2_b"]),
        ("Al_1_assignsubmission_file_", ["2/vae", "_2_3_gaussian_elbo"]),
        ("Al_1_assignsubmission_file", ["Al_2_assignsubmission_file_/vae"]),
    ],
)
def test_the_only_students_folder_is_not_taken_for_it(student, names, hand_in):
    content = notebook(heading="# Beta VAE")
    found = hand_in({f"{student}/{name}.ipynb": content for name in names})
    assert {one.student for one in found} == {"doe" if student == "doe" else "1"}


def test_nor_is_a_folder_that_the_roster_or_another_file_shows_to_be_one(hand_in):
    files = {"doe/mine/gaussian_elbo.ipynb": notebook()}
    assert only(hand_in(files, ["doe"])).student == "doe"
    assert only(hand_in(files, home="submitted")).student == "doe"
    found = hand_in(files | {"roe_gaussian_elbo.ipynb": notebook()}, home="two")
    assert [one.student for one in found] == ["doe", "roe"]


def test_nbgraders_other_folders_are_left_out(hand_in):
    steps = ["source", "release/x", "submitted/doe", "autograded/doe", "feedback/doe"]
    files = {f"{step}/gaussian_elbo/{FIRST}": notebook(step) for step in steps}
    assert told(hand_in(files)) == [("doe", "gaussian_elbo", False, "submitted/doe")]


def test_litter_is_nobodys(hand_in):
    files = {
        "doe/gaussian_elbo.ipynb": notebook("real"),
        "doe/.ipynb_checkpoints/gaussian_elbo-checkpoint.ipynb": notebook("old"),
        "doe/._gaussian_elbo.ipynb": "\0\5\x16\7",
        "__MACOSX/doe/gaussian_elbo.ipynb": "\0\5\x16\7",
        ".DS_Store": "",
        "grades.csv": "",
        "doe/photo.png": "",
    }
    assert told(hand_in(files)) == [("doe", "gaussian_elbo", False, "real")]


def test_a_heading_tells_more_than_a_folder(hand_in):
    files = {
        "doe/gaussian_elbo/a.ipynb": notebook("no heading"),
        "doe/gaussian_elbo/b.ipynb": notebook("it", "# The Gaussian ELBO"),
        "doe/gaussian_elbo/c.ipynb": notebook("other", "# Beta VAE"),
    }
    assert [(one[1], one[3]) for one in told(hand_in(files))] == [
        ("beta_vae", "other"),
        ("gaussian_elbo", "it"),
    ]


# Which of several, and who has none


@pytest.mark.parametrize(
    "newest, others",
    [
        ("doe_1_9_gaussian_elbo-1.ipynb", ["doe_1_9_gaussian_elbo.ipynb"]),
        ("doe_1_9_gaussian_elbo-10.ipynb", ["doe_1_9_gaussian_elbo-9.ipynb"]),
        ("doe_1_20_final_gaussian_elbo.ipynb", ["doe_1_9_gaussian_elbo-3.ipynb"]),
        ("doe_1_9_gaussian_elbo.ipynb", ["doe_1_20_other.ipynb"]),
        ("doe_gaussian_elbo (1).ipynb", ["doe_gaussian_elbo.ipynb"]),
        ("doe/gaussian_elbo.ipynb", ["doe/a.ipynb", "doe/b.ipynb"]),
        (
            "doe_1_9_gaussian_elbo-0f8fad5b-d9cb-469f-a165-70867728950e.ipynb",
            ["doe_1_9_gaussian_elbo-7.ipynb"],
        ),
    ],
)
def test_the_newest_is_taken(newest, others, hand_in):
    heading = "# The Gaussian ELBO"
    files = {name: notebook("old", heading) for name in others}
    for order in (files | {newest: notebook("new")}, {newest: notebook("new")} | files):
        assert told(hand_in(order)) == [only(told(hand_in(order)))]
        assert only(told(hand_in(order)))[3] == "new"


def test_lateness_is_that_of_the_file_taken(hand_in):
    late, early = "d_LATE_1_9_gaussian_elbo-1.ipynb", "d_1_8_gaussian_elbo.ipynb"
    assert only(hand_in({late: notebook("b"), early: notebook("a")})).late
    newer = {late: notebook("b"), "d_1_99_gaussian_elbo-2.ipynb": notebook("c")}
    assert not only(hand_in(newer, home="newer")).late


def test_two_of_equal_standing_are_not_chosen_between(hand_in):
    names = [f"doe/{part}/gaussian_elbo.ipynb" for part in "ab"]
    files = {"roe/vae.ipynb": notebook()}
    one = hand_in(files | {name: notebook(name) for name in names})[0]
    assert (one.student, one.exercise, one.path) == ("doe", "gaussian_elbo", None)
    assert "keep one" in one.problem
    assert all(repr(name) in one.problem for name in names)
    same = hand_in(files | {name: notebook("s") for name in names}, home="same")[0]
    assert told([same]) == [("doe", "gaussian_elbo", False, "s")]


def test_two_files_are_compared_by_content(tmp_path):
    for part in "ab":
        folder_of({f"doe/{part}/vae.ipynb": notebook(part)}, tmp_path)
        os.utime(tmp_path / "doe" / part / "vae.ipynb", (1, 1))
    assert (
        "keep one" in only(find_submissions(tmp_path, NAMES, tmp_path, ["doe"])).problem
    )


def test_a_newer_file_that_cannot_be_read_hides_the_older(hand_in, monkeypatch):
    monkeypatch.setattr(intake, "LARGEST", 500)
    names = ["d_1_8_gaussian_elbo.ipynb", "d_1_9_gaussian_elbo-1.ipynb"]
    one = only(hand_in({names[0]: notebook(), names[1]: notebook("x" * 500)}))
    with pytest.raises(ValueError, match="MB"):
        read_cells(one.path) if one.path else fail(one.problem)


def fail(problem: str):
    raise ValueError(problem)


def test_a_student_has_several_exercises(hand_in):
    files = {f"doe/{name}.ipynb": notebook(name) for name in NAMES}
    expected = [("doe", name, False, name) for name in sorted(NAMES)]
    assert told(hand_in(files)) == expected


def test_who_has_no_file_is_missing(hand_in):
    files = {"doe/vae.ipynb": notebook(), "roe/beta_vae.ipynb": notebook()}
    found = hand_in(files, students=["poe", "doe"])
    missing = [(x.student, x.exercise) for x in found if not x.path and not x.problem]
    # Nobody handed in the third exercise: it is not due yet.
    assert missing == [("doe", "beta_vae"), ("poe", "beta_vae"), ("poe", "vae")]
    assert [one.student for one in found if one.path] == ["doe", "roe"]
    assert not [one for one in hand_in(files) if not one.path]


def test_if_there_is_one_exercise_nobody_need_have_done_it(hand_in):
    found = hand_in({"readme.txt": ""}, students=["doe"], names=["vae"])
    assert found == [Submission("doe", "vae")]


def test_what_is_no_notebook_is_reported_where_there_is_none(hand_in):
    files = {
        "doejane_1_2_report.pdf": "",
        "doejane_1_3_photo.png": "",
        "roeal_LATE_4_text.html": "",
        "poe_5_6_work.ipynb": notebook(heading="# Vae"),
        "poe_5_7_data.csv": "",
        "coe_8_9_all.zip": "",
    }
    found = hand_in(files, students=["1", "4", "5", "8", "10"])
    assert [(one.student, one.exercise, one.late) for one in found] == [
        ("1", "vae", False),
        ("10", "vae", False),
        ("4", "vae", True),
        ("5", "vae", False),
        ("8", "vae", False),
    ]
    one, missing, four, five, eight = found
    assert "'doejane_1_2_report.pdf': no notebook; " in one.problem
    assert missing == Submission("10", "vae")
    assert "no notebook" in four.problem and not five.problem
    assert "a zip where a notebook is needed" in eight.problem


def test_a_long_list_of_files_is_cut(hand_in):
    files = {f"doe/{number}.txt": "" for number in range(9)}
    assert only(hand_in(files)).problem.endswith("no notebook; and 6 more")


def test_the_order_is_the_same_from_any_file_system(tmp_path, monkeypatch):
    folder_of({f"{x}/{y}.ipynb": notebook() for x in "cab" for y in NAMES}, tmp_path)
    folder_of({f"d/{x}.txt": "" for x in "bac"}, tmp_path)
    first = find_submissions(tmp_path, NAMES, tmp_path)
    ordinary = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda self: reversed([*ordinary(self)]))
    assert find_submissions(tmp_path, NAMES, tmp_path) == first
    assert first == sorted(first, key=lambda one: (one.student, one.exercise))


@pytest.mark.parametrize(
    "path, reason",
    [
        ("none", "no such folder or zip"),
        ("file", "neither a folder nor a readable zip"),
        ("damaged.zip", "neither a folder nor a readable zip"),
    ],
)
def test_what_is_neither_folder_nor_zip_is_refused(path, reason, tmp_path):
    (tmp_path / "file").write_text(notebook())
    whole = zip_of({FIRST: notebook()}, tmp_path / "whole.zip").read_bytes()
    (tmp_path / "damaged.zip").write_bytes(whole[: len(whole) - 30])
    with pytest.raises(ValueError, match=f"{path}: {reason}"):
        find_submissions(tmp_path / path, NAMES, tmp_path / "scratch")


# Strange names

STRANGE = {
    "control characters": ("d\x1b[31m\noe/gaussian_elbo.ipynb", "d[31moe"),
    "direction override": ("d\u202eoe/gaussian_elbo.ipynb", "doe"),
    "decomposed": ("Mu\u0308ller/gaussian_elbo.ipynb", "Müller"),
    "spaces around": (" doe /gaussian_elbo.ipynb", "doe"),
    "markup": ("<script>/gaussian_elbo.ipynb", "<script>"),
    "formula": ("=1+1/gaussian_elbo.ipynb", "=1+1"),
    "nothing visible": ("\u200b/gaussian_elbo.ipynb", "unnamed"),
    "other script": ("जेन/gaussian_elbo.ipynb", "जेन"),
    "Windows": ("doe\\gaussian_elbo\\gaussian_elbo.ipynb", "doe"),
    "dots": ("./doe/./gaussian_elbo.ipynb", "doe"),
    "long": ("d" * 255 + "/gaussian_elbo.ipynb", "d" * 255),
}


@pytest.mark.parametrize("kind", STRANGE)
def test_strange_names_are_made_safe(kind, hand_in):
    name, student = STRANGE[kind]
    found = hand_in({name: notebook("s"), "roe/vae.ipynb": notebook()})
    assert (student, "gaussian_elbo", False, "s") in told(found)


def test_a_roster_keeps_its_own_spelling(hand_in):
    found = hand_in({"Müller/vae.ipynb": notebook()}, students=["Mu\u0308ller"])
    assert only(found).student == "Mu\u0308ller"


def test_a_name_that_is_not_unicode(tmp_path):
    folder = tmp_path / os.fsdecode(b"d\xffoe")
    folder_of({FIRST: notebook("s")}, folder)
    found = find_submissions(tmp_path, NAMES, tmp_path / "scratch")
    assert told(found) == [("doe", "gaussian_elbo", False, "s")]


def test_names_that_differ_in_case_are_kept_apart(hand_in):
    found = hand_in({f"{x}/gaussian_elbo.ipynb": notebook(x) for x in ("Doe", "doe")})
    assert [x[3] for x in told(found)] == ["Doe", "doe"]


# What a folder may hold


def test_links_are_not_followed(tmp_path):
    secret = folder_of({FIRST: notebook("secret")}, tmp_path / "outside")
    root = folder_of({"roe/vae.ipynb": notebook("r")}, tmp_path / "in")
    (root / "doe").mkdir()
    (root / "doe" / FIRST).symlink_to(secret / FIRST)
    (root / "doe" / "beta_vae.ipynb").symlink_to(root / "roe" / "vae.ipynb")
    (root / "poe").symlink_to(secret, target_is_directory=True)
    (root / "coe").mkdir()
    (root / "coe" / "loop").symlink_to(root, target_is_directory=True)
    found = find_submissions(root, NAMES, tmp_path / "scratch")
    assert told([one for one in found if one.path]) == [("roe", "vae", False, "r")]
    broken = [one for one in found if not one.path]
    assert [one.student for one in broken] == ["", "coe", "doe", "doe"]
    assert all("a symbolic link" in one.problem for one in broken)
    with pytest.raises(ValueError, match="a symbolic link"):
        read_cells(root / "doe" / FIRST)


def test_pipes_and_sockets_are_not_opened(tmp_path):
    for student in ("doe", "roe"):
        (tmp_path / student).mkdir()
    pipe = tmp_path / "doe" / FIRST
    os.mkfifo(pipe)
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as plug:
        plug.bind(f"{short}/s")
        os.rename(f"{short}/s", tmp_path / "roe" / FIRST)
        found = find_submissions(tmp_path, NAMES, tmp_path / "scratch")
    assert [(one.path, one.problem) for one in found] == [
        (None, "not a regular file"),
        (None, "not a regular file"),
    ]
    with pytest.raises(ValueError, match="not a regular file"):
        read_cells(pipe)


@pytest.fixture
def no_rights():
    """A folder in which file permissions count: root would pass them over."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        ordinary = os.geteuid()
        if ordinary == 0:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(ordinary)
            for path in Path(name).rglob("*"):
                path.chmod(0o700)


def test_what_may_not_be_read_is_reported(no_rights):
    names = ["doe/vae.ipynb", "roe/vae.ipynb", "coe/x.ipynb", "poe/vae.ipynb"]
    folder_of({name: notebook() for name in names}, no_rights)
    for name, mode in zip(["doe", "roe", "coe/x.ipynb"], [0, 0o444, 0]):
        (no_rights / name).chmod(mode)
    found = find_submissions(no_rights, NAMES, no_rights)
    assert [one.student for one in found] == ["coe", "doe", "poe", "roe"]
    coe, doe, poe, roe = found
    for one in (coe, doe, roe):
        assert one.exercise == "vae" and "cannot be read: Permission" in one.problem
    assert not poe.problem
    poe.path.chmod(0)
    with pytest.raises(ValueError, match="cannot be read: Permission denied"):
        read_cells(poe.path)
    folder_of({"poe/b/vae.ipynb": notebook()}, no_rights)
    poe = find_submissions(no_rights, NAMES, no_rights)[-2]
    assert poe.student == "poe" and "keep one" in poe.problem
    (no_rights / "poe").chmod(0)
    with pytest.raises(ValueError, match="poe cannot be read: Permission denied"):
        find_submissions(no_rights / "poe", NAMES, no_rights)


def test_a_folder_of_too_many_files_is_refused(tmp_path, monkeypatch):
    folder_of({f"doe/{number}.txt": "" for number in range(11)}, tmp_path)
    monkeypatch.setattr(intake, "MOST_FILES", 11)
    find_submissions(tmp_path, NAMES, tmp_path)
    monkeypatch.setattr(intake, "MOST_FILES", 10)
    with pytest.raises(ValueError, match="more than 10 files"):
        find_submissions(tmp_path, NAMES, tmp_path)


# What a zip may hold


def entry(name: str, **more) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    for key, value in more.items():
        setattr(info, key, value)
    return info


@pytest.fixture
def unzip(tmp_path):
    """Hand in a zip of (entry, content) pairs; nothing may appear outside scratch."""

    def find(*pairs, change=lambda data: data):
        path = tmp_path / "course" / "all.zip"
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as bundle:
            for info, content in pairs:
                bundle.writestr(info, content)
        path.write_bytes(change(path.read_bytes()))
        scratch = tmp_path / "course" / "a" / "scratch"
        found = find_submissions(path, NAMES, scratch)
        inside = {scratch, scratch.parent, path, path.parent}
        assert all(x in inside or scratch in x.parents for x in tmp_path.rglob("*"))
        assert all(one.path is None or scratch in one.path.parents for one in found)
        return found

    return find


@pytest.mark.parametrize(
    "name",
    [
        "../doe/gaussian_elbo.ipynb",
        "doe/../../gaussian_elbo.ipynb",
        "..\\doe\\gaussian_elbo.ipynb",
        "/doe/gaussian_elbo.ipynb",
        "\\\\server\\doe\\gaussian_elbo.ipynb",
        "C:\\doe\\gaussian_elbo.ipynb",
        "C:gaussian_elbo.ipynb",
        "../doejane_12_3_gaussian_elbo.ipynb",
        "d" * 256 + "/gaussian_elbo.ipynb",
        "_" * 60_000 + ".ipynb",
    ],
)
def test_a_name_that_cannot_be_trusted_is_nobodys(name, unzip):
    good = (entry("submitted/doe/gaussian_elbo.ipynb"), notebook("good"))
    bad, kept = unzip((entry(name), notebook("bad")), good)
    assert told([kept]) == [("doe", "gaussian_elbo", False, "good")]
    assert (bad.student, bad.exercise, bad.path) == ("", "", None)
    assert "outside the zip" in bad.problem or "is too long for" in bad.problem
    assert len(bad.problem) < 150


UNSAFE = [
    (FIRST, {"external_attr": stat.S_IFLNK << 16}, "a symbolic link"),
    ("x", {"external_attr": (stat.S_IFLNK | 0o777) << 16}, "a symbolic link"),
    (FIRST, {"external_attr": stat.S_IFIFO << 16}, "not a regular file"),
    (FIRST, {"external_attr": stat.S_IFBLK << 16}, "not a regular file"),
    (FIRST, {"compress_type": zipfile.ZIP_BZIP2}, "an unusual method"),
    (FIRST, {"compress_type": zipfile.ZIP_LZMA}, "an unusual method"),
    ("gaussian_elbo.ZIP", {}, "a zip where a notebook is needed"),
]


@pytest.mark.parametrize("name, about, reason", UNSAFE)
def test_unsafe_entries_are_refused_and_the_rest_is_read(name, about, reason, unzip):
    info = entry(f"doe/{name}", **about)
    good = (entry("roe/gaussian_elbo.ipynb"), notebook("good"))
    bad, kept = unzip((info, "/etc/passwd"), good)
    assert told([kept]) == [("roe", "gaussian_elbo", False, "good")]
    assert (bad.student, bad.exercise, bad.path) == ("doe", "gaussian_elbo", None)
    assert reason in bad.problem


def test_an_encrypted_entry_is_refused(unzip):
    def encrypt(data: bytes) -> bytes:
        """Set the flag of the first entry in both of its headers."""
        data = bytearray(data)
        data[6] |= 1
        data[data.index(b"PK\1\2") + 8] |= 1
        return bytes(data)

    doe, roe = unzip(*good_pair(), change=encrypt)
    assert doe.problem == "encrypted in the zip" and not roe.problem


def good_pair():
    for student in ("doe", "roe"):
        yield entry(f"{student}/gaussian_elbo.ipynb"), notebook(student)


def test_a_damaged_entry_costs_only_itself(unzip):
    def damage(data: bytes) -> bytes:
        at = data.index(FIRST.encode()) + len(FIRST) + 5
        return data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]

    doe, roe = unzip(*good_pair(), change=damage)
    assert (doe.path, doe.problem) == (None, "damaged in the zip") and not roe.problem


def test_an_entry_may_lie_about_its_size(unzip):
    def lie(data: bytes) -> bytes:
        """Say 5 where there are more."""
        size = len(notebook("doe")).to_bytes(4, "little")
        return data.replace(size, (5).to_bytes(4, "little"))

    for one in unzip(*good_pair(), change=lie):
        assert one.problem == "damaged in the zip"


def test_an_entry_that_understates_its_size_is_not_unpacked_in_memory(
    unzip, monkeypatch
):
    monkeypatch.setattr(intake, "LARGEST", 1000)
    size = 30_000_000
    lie = (size.to_bytes(4, "little"), (500).to_bytes(4, "little"))
    pair = (entry(f"doe/{FIRST}"), bytes(size))

    def understate(data: bytes) -> bytes:
        tracemalloc.start()
        return data.replace(*lie)

    assert only(unzip(pair, change=understate)).problem == "damaged in the zip"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 10


def test_a_large_entry_is_not_unpacked(unzip, monkeypatch):
    monkeypatch.setattr(intake, "LARGEST", 1000)
    large = (entry(f"doe/{FIRST}"), b" " * 1001)
    small = (entry(f"roe/{FIRST}"), notebook().ljust(1000))
    doe, roe = unzip(large, small)
    assert "MB, more than" in doe.problem and not roe.problem


@pytest.mark.parametrize(
    "ratio, room, unpacked",
    [(100, (0, 10**9), 40), (10, (0, 10**9), None), (1, (50_000, 10**9), 5)]
    + [(100, (0, 25_000), 2)],
)
def test_a_zip_bomb_stops_unpacking_in_time(
    ratio, room, unpacked, unzip, tmp_path, monkeypatch
):
    monkeypatch.setattr(intake, "RATIO", ratio)
    monkeypatch.setattr(intake, "ROOM", room)
    text = notebook().ljust(10_000)
    found = unzip(*((entry(f"{x}/gaussian_elbo.ipynb"), text) for x in range(40)))
    if unpacked is None:
        size = (tmp_path / "course" / "all.zip").stat().st_size
        unpacked = ratio * size // 10_000
        assert 0 < unpacked < 40
    assert sum(bool(one.path) for one in found) == unpacked
    assert len(list(tmp_path.rglob("0*.ipynb"))) == unpacked
    assert sum("zip bomb" in one.problem for one in found) == 40 - unpacked


def test_a_zip_of_too_many_entries_is_refused(unzip, monkeypatch):
    monkeypatch.setattr(intake, "MOST_FILES", 1)
    with pytest.raises(ValueError, match="all.zip: more than 1 files"):
        unzip(*good_pair())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_one_name_twice_in_a_zip(unzip):
    info = entry(f"doe/{FIRST}")
    one = only(unzip((info, notebook("a")), (entry(info.filename), notebook("b"))))
    assert one.path is None and "keep one" in one.problem
    one = only(unzip((info, notebook("a")), (entry(info.filename), notebook("a"))))
    assert told([one]) == [("doe", "gaussian_elbo", False, "a")]
    link = {"external_attr": stat.S_IFLNK << 16}
    one = only(unzip(*((entry(f"doe/{FIRST}", **link), "x") for _ in "ab")))
    assert one.path is None and "keep one" in one.problem


def test_names_in_utf8_that_the_zip_does_not_declare(unzip):
    name = f"Müller/{FIRST}".encode()

    def undeclared(data: bytes) -> bytes:
        return data.replace(b"Mxxller", "Müller".encode())

    pair = (entry(name.replace("ü".encode(), b"xx").decode()), notebook())
    assert only(unzip(pair, change=undeclared)).student == "Müller"


def test_a_folder_in_a_zip_may_be_called_a_notebook(unzip):
    assert unzip((entry("doe/vae.ipynb/"), ""), (entry("roe\\vae.ipynb\\"), "")) == []
    assert [x.problem for x in unzip((entry("."), ""), (entry("doe"), ""))] == []


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_no_damage_to_a_zip_gives_more_than_a_reason(seed, count):
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        files = {f"{x}/gaussian_elbo.ipynb": notebook(x) for x in "ab"}
        path = zip_of(files | {"a/x.txt": ""}, Path(name, "x.zip"))
        data = bytearray(path.read_bytes())
        for _ in range(count):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data)
        try:
            found = find_submissions(path, NAMES, Path(name, "scratch"))
        except ValueError as error:
            assert "neither a folder nor a readable zip" in str(error)
        else:
            assert all(one.path or one.problem for one in found)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=40), max_size=4))
def test_no_name_in_a_zip_stops_the_rest(names):
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "x.zip")
        with zipfile.ZipFile(path, "w") as bundle:
            for number, name in enumerate(names):
                name = name.encode(errors="replace").decode().replace("\0", "")
                bundle.writestr(f"{name}{number}.ipynb", notebook())
            bundle.writestr("_77_1_vae.ipynb", notebook("kept"))
            bundle.writestr("_78_1_vae.ipynb", notebook())
        found = find_submissions(path, NAMES, Path(scratch, "scratch"))
    assert [one.exercise for one in found if one.student == "77"] == ["vae"]
    json.dumps([one.student for one in found], ensure_ascii=False).encode()


# Reading a notebook


def read(tmp_path, content: bytes | str) -> list[str]:
    path = tmp_path / "x.ipynb"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_cells(path)


def cells(*several, **more) -> str:
    return json.dumps({"nbformat": 4, "cells": several} | more)


CODE = {"cell_type": "code"}


@pytest.mark.parametrize(
    "several, sources",
    [
        ([], []),
        ([CODE | {"source": "a = 1"}, CODE | {"source": "b"}], ["a = 1", "b"]),
        ([CODE | {"source": ["a\n", "b"]}], ["a\nb"]),
        ([CODE | {"source": []}, CODE], ["", ""]),
        ([CODE] * 2000, [""] * 2000),
        ([{"cell_type": "markdown", "source": "a"}, {"source": "b"}, {}], []),
        ([{"cell_type": "raw", "source": "a"}, {"cell_type": 3}], []),
        ([CODE | {"source": "a", "outputs": 7, "metadata": [], "id": None}], ["a"]),
        ([CODE | {"source": "'\ud800'"}], ["'?'"]),
        ([CODE | {"source": "é = '😀'"}], ["é = '😀'"]),
    ],
)
def test_sources_of_code_cells_in_order(several, sources, tmp_path):
    assert read(tmp_path, cells(*several)) == sources
    more = {
        "metadata": {"kernelspec": {"name": "ir"}, "colab": {}},
        "nbformat_minor": 99,
    }
    assert read(tmp_path, cells(*several, **more)) == sources


OLD = {"cell_type": "code", "language": "python", "outputs": [], "metadata": {}}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_notebooks_are_converted(version, tmp_path, capfd):
    key = "code" if version == 1 else "input"
    several = [OLD | {key: text} for text in ("a = 1\nb = 2", "c")]
    body = {"cells": several} if version == 1 else {"worksheets": [{"cells": several}]}
    old = {"nbformat": version, "nbformat_minor": 0, "metadata": {"name": ""}} | body
    assert read(tmp_path, json.dumps(old)) == ["a = 1\nb = 2", "c"]
    assert capfd.readouterr().err == ""


def test_a_heading_cell_of_an_old_notebook_is_a_heading(tmp_path):
    cell = {"cell_type": "heading", "level": 1, "source": ["Beta VAE"], "metadata": {}}
    body = {"worksheets": [{"cells": [cell], "metadata": {}}]}
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}} | body
    folder_of({"in/doe/x.ipynb": json.dumps(old)}, tmp_path)
    assert (
        only(find_submissions(tmp_path / "in", NAMES, tmp_path)).exercise == "beta_vae"
    )


def test_utf8_with_a_mark_is_read(tmp_path):
    content = b"\xef\xbb\xbf" + cells(CODE | {"source": "é"}).encode()
    assert read(tmp_path, content) == ["é"]


UNREADABLE = {
    "empty": ("", "the file is empty"),
    "blank": (" \r\n\t", "the file is empty"),
    "utf-16": (cells().encode("utf-16"), "UTF-16"),
    "utf-16, other order": (b"\xfe\xff" + cells().encode("utf-16-be"), "UTF-16"),
    "utf-16, no mark": (cells().encode("utf-16-le"), "not JSON"),
    "latin-1": (b'{"cells": "\xe9"}', "not UTF-8 text, at byte 11"),
    "binary": (random.Random(1).randbytes(5000), "not UTF-8 text"),
    "cut off": (cells(CODE)[:-5], "not JSON: .* in line 1"),
    "html": ("<!DOCTYPE html>\n<p>", "not JSON"),
    "python": ("def f():\n    return 1\n", "not JSON"),
    "two documents": (cells() + "\n" + cells(), "not JSON: Extra data, in line 2"),
    "list": ("[1, 2]", "JSON, but not a notebook"),
    "word": ('"hello"', "JSON, but not a notebook"),
    "null": ("null", "JSON, but not a notebook"),
    "other": ('{"version": 4, "cells": []}', "JSON, but not a notebook"),
    "version a word": (cells(nbformat="4"), "JSON, but not a notebook"),
    "version true": (cells(nbformat=True), "JSON, but not a notebook"),
    "version 5": (cells(nbformat=5), "nbformat 5 is unknown"),
    "version 0": (cells(nbformat=0), "nbformat 0 is unknown"),
    "version -1": (cells(nbformat=-1), "nbformat -1 is unknown"),
    "no cells": ('{"nbformat": 4}', "no list of cells"),
    "cells an object": ('{"nbformat": 4, "cells": {}}', "no list of cells"),
    "many cells": (cells(*[CODE] * 2001), "2001 cells, more than 2000"),
    "cell a word": (cells(CODE, "x = 1"), "cell 2 is not a cell"),
    "source a number": (cells(CODE | {"source": 7}), "source of cell 1 is not text"),
    "source null": (cells(CODE | {"source": None}), "source of cell 1 is not text"),
    "source of lists": (cells(CODE | {"source": [["a"]]}), "source of cell 1 is not"),
    "version 3, broken": ('{"nbformat": 3, "worksheets": 7}', "3 cannot be converted"),
    "version 3, empty": ('{"nbformat": 3}', "3 cannot be converted|no list of cells"),
    "deep": ('{"nbformat": 4, "cells": ' + "[" * 100_000, "nested too deeply"),
    "deep, closed": ("[" * 50_000 + "]" * 50_000, "nested too deeply"),
    "digits": ('{"nbformat": 4, "cells": [' + "9" * 5000 + "]}", "too many digits"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_cannot_be_read_has_a_reason(kind, tmp_path):
    content, reason = UNREADABLE[kind]
    with pytest.raises(ValueError, match=reason) as caught:
        read(tmp_path, content)
    message = str(caught.value)
    assert len(message) < 100 and "\n" not in message and str(tmp_path) not in message


def test_a_huge_file_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "x.ipynb"
    with path.open("wb") as file:
        file.truncate(intake.LARGEST + 1)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    with pytest.raises(ValueError, match="10.0 MB, more than 10 MB"):
        read_cells(path)


def test_a_file_of_the_largest_size_is_read(tmp_path):
    assert read(tmp_path, cells(CODE).ljust(intake.LARGEST)) == [""]


@pytest.mark.parametrize("path", [".", "none.ipynb"])
def test_what_is_no_file_has_a_reason(path, tmp_path):
    with pytest.raises(ValueError, match="not a regular file|cannot be read: No such"):
        read_cells(tmp_path / path)


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-1, 5) | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["nbformat", "cells", "worksheets", "source", "input", "cell_type"]
                    + ["metadata", "nbformat_minor", "level", "outputs", "language"]
                ),
                inner | st.sampled_from(["code", "markdown", "heading"]),
                max_size=5,
            )
        ),
        max_leaves=20,
    ),
    st.integers(1, 4),
)
def test_any_json_gives_sources_or_a_reason(document, version):
    if isinstance(document, dict):
        document["nbformat"] = version
    with tempfile.TemporaryDirectory() as name:
        try:
            sources = read(Path(name), json.dumps(document))
        except ValueError:
            return
    assert all(isinstance(source, str) for source in sources)
    "".join(sources).encode()


def test_reading_runs_nothing(tmp_path):
    trap = f"open({str(tmp_path / 'ran')!r}, 'w')"
    sources = [f"!touch {tmp_path / 'ran'}", f"%run {trap}", trap]
    found = read(tmp_path, cells(*(CODE | {"source": source} for source in sources)))
    assert found == sources and not (tmp_path / "ran").exists()

"""What every report is made of: where each student stands in each exercise."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from coursework.checks import Exercise
from coursework.points import Mark, Parts, decimal, read_marks, read_results

STATUSES = {
    "ok": "Graded.",
    "late": "Handed in late, and graded.",
    "timeout": "Took too long and was stopped there; all other checks count.",
    "killed": "Broke down or was stopped there; all other checks count.",
    "memory": "Needed too much memory and was stopped there; all other checks count.",
    "unreadable": "What was handed in could not be read.",
    "missing": "Nothing was handed in.",
}
# What grading says of a function that the notebook does not define.
ABSENT = "there is no function of this name"


@dataclass(frozen=True)
class Part:
    """A pencil part: its grade_id, its points, and what was given, if anything.

    Students do not see the grade_id; ``title`` is what they know the part by.
    """

    name: str
    maximum: float
    mark: Mark | None
    title: str = "pencil"

    @property
    def earned(self) -> str:
        """Points, a dash where there are none yet."""
        return decimal(self.mark.points) if self.mark else "–"

    @property
    def comment(self) -> str:
        """What the grader wrote, if anything."""
        return self.mark.comment if self.mark else "not graded yet"


@dataclass(frozen=True)
class Grade:
    """Where a student stands in an exercise.

    ``checks`` are as grading left them, and each names its "function".
    """

    student: str
    name: str
    exercise: str
    title: str
    status: str
    problem: str
    checks: Sequence[Mapping]
    parts: Sequence[Part]

    @property
    def automatic(self) -> float:
        """Points of the hidden checks."""
        return sum(check["earned"] for check in self.checks)

    @property
    def pencil(self) -> float | None:
        """Points of the pencil parts; None if none of them has been given any yet."""
        given = [part.mark.points for part in self.parts if part.mark]
        waits = self.parts and not given and self.handed_in
        return None if waits else sum(given)

    @property
    def total(self) -> float:
        """All points so far."""
        return self.automatic + (self.pencil or 0)

    @property
    def maximum(self) -> float:
        """All points that can be had."""
        return self.by_checks + sum(part.maximum for part in self.parts)

    @property
    def by_checks(self) -> float:
        """Points that the hidden checks can give."""
        return sum(check["points"] for check in self.checks)

    @property
    def handed_in(self) -> bool:
        """Whether there is anything to grade, be it on paper."""
        return self.status != "missing" or any(part.mark for part in self.parts)

    @property
    def shown_checks(self) -> Sequence[Mapping]:
        """The checks that a student sees: none before there was something to run."""
        return [] if self.status in ("missing", "unreadable") else self.checks

    @property
    def waiting(self) -> bool:
        """Whether a pencil part has no points yet."""
        return self.handed_in and any(part.mark is None for part in self.parts)


def collect(
    report_dir: Path,
    exercises: Mapping[str, Exercise],
    parts: Parts,
    titles: Mapping[str, Mapping[str, str]],
    names: Mapping[str, str],
) -> list[Grade]:
    """Join results, hand-given points and names, by student and exercise.

    ``titles`` are those of the pencil parts, ``names`` those of the students.
    """
    marks = read_marks(report_dir)
    grades = []
    for result in read_results(report_dir):
        student, exercise = result["student"], result["exercise"]
        _compare(result, exercises)
        late = result["status"] == "ok" and result["late"]
        grades.append(
            Grade(
                student=student,
                name=names.get(student, ""),
                exercise=exercise,
                title=exercises[exercise].title,
                status="late" if late else result["status"],
                problem=result["problem"],
                checks=[
                    ran | {"function": check.function}
                    for ran, check in zip(
                        result["checks"], exercises[exercise].checks, strict=True
                    )
                ],
                parts=[
                    Part(
                        part,
                        maximum,
                        marks.get((student, exercise, part)),
                        titles[exercise][part],
                    )
                    for part, maximum in parts.get(exercise, {}).items()
                ],
            )
        )
    return grades


def _compare(result: Mapping, exercises: Mapping[str, Exercise]) -> None:
    """ValueError unless a result is of an exercise as it is now."""
    name = result["exercise"]
    if name not in exercises:
        known = ", ".join(exercises)
        raise ValueError(f"exercise = {name!r}: must be one of {known}")
    ran = [check["name"] for check in result["checks"]]
    if ran != [check.name for check in exercises[name].checks]:
        raise ValueError(
            f"{name} of student {result['student']!r} was graded by other checks than "
            "it has now: grade again"
        )


def pencil_titles(master: Path) -> dict[str, str]:
    """What students may call the pencil parts of a master: the heading above them.

    By grade_id; parts under one heading are numbered.
    """
    heading, under = "", {}
    for cell in nbformat.read(master, as_version=4).cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "markdown":
            continue
        if about.get("grade"):
            under.setdefault(heading, []).append(about["grade_id"])
        else:
            found = re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE)
            heading = found[-1] if found else heading
    titles = {}
    for heading, parts in under.items():
        for number, part in enumerate(parts, 1):
            pencil = f"pencil {number}" if len(parts) > 1 else "pencil"
            titles[part] = f"{heading} ({pencil})" if heading else pencil
    return titles


def grouped(grades: Sequence[Grade], by: str) -> dict[str, list[Grade]]:
    """Return the grades of each "student" or "exercise", these in order."""
    groups = {name: [] for name in sorted({getattr(grade, by) for grade in grades})}
    for grade in grades:
        groups[getattr(grade, by)].append(grade)
    return groups


def advice(check: Mapping) -> list[str]:
    """Why a check did not pass, and what may help; nothing if it passed."""
    if check["earned"] == check["points"]:
        return []
    if check["reason"] == ABSENT:
        return [f"define {check['function']}; nothing of this name was found"]
    hint = check["hint"] and f"Hint: {check['hint']}"
    return [line for line in (check["reason"], hint) if line]

"""The commands: python -m coursework release, grade, points, report."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

MASTERS = Path("solutions")


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; 0 if it went well, 2 with one line on stderr if it could not."""
    arguments = parser().parse_args(words)
    try:
        for line in arguments.run(arguments):
            print(line)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"coursework: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "coursework: stopped; the same command goes on from here", file=sys.stderr
        )
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(prog="python -m coursework", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    release = _command(
        commands,
        "release",
        _release,
        "make the student notebooks from the masters, and look whether anything leaks",
        "release --roster roster.csv --key ~/course.key --to handout",
    )
    release.add_argument("--to", type=Path, required=True, help="folder to write to")
    _add_people(release)

    grade = _command(
        commands,
        "grade",
        _grade,
        "grade submissions in a sandbox; stop it at any moment and start it again",
        "grade submissions.zip --to report --roster roster.csv --key ~/course.key",
    )
    grade.add_argument(
        "submissions",
        type=Path,
        help="a folder of notebooks or of students' folders, a Canvas or Moodle "
        "download, zipped or not, or nbgrader's submitted/",
    )
    grade.add_argument("--to", type=Path, required=True, help="folder of the report")
    grade.add_argument("--workers", type=int, help="notebooks at a time")
    grade.add_argument("--scheduler", help="address of a dask.distributed scheduler")
    grade.add_argument("--only", metavar="NAME", help="grade this exercise alone")
    grade.add_argument(
        "--no-sandbox",
        action="store_true",
        help="run the code with your own rights: for files of your own alone",
    )
    _add_people(grade)

    points = _command(
        commands,
        "points",
        _points,
        "take points that you gave by hand, or write a table to fill in",
        "points report --template table.csv, and later: points report table.csv",
    )
    points.add_argument("report", type=Path, help="folder of the report")
    points.add_argument("table", type=Path, nargs="?", help="csv with your points")
    points.add_argument("--template", type=Path, help="csv to write, not there yet")
    points.add_argument("--roster", type=Path, help="names for the template")

    report = _command(
        commands,
        "report",
        _report,
        "write grades.csv, import files, a page for each student and one for the class",
        "report report --canvas gradebook.csv",
    )
    report.add_argument("report", type=Path, help="folder of the report")
    report.add_argument("--roster", type=Path, help="who the students are")
    report.add_argument("--canvas", type=Path, help="a gradebook that Canvas exported")
    report.add_argument(
        "--moodle", type=Path, nargs="+", default=[], help="grading worksheets"
    )
    return top


def _command(commands, name: str, run, what: str, example: str):
    command = commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=f"Example: python -m coursework {example}",
    )
    command.set_defaults(run=run)
    command.add_argument(
        "--masters",
        type=Path,
        default=MASTERS,
        help="folder of masters and hidden checks (default: solutions)",
    )
    return command


def _add_people(command) -> None:
    command.add_argument(
        "--roster",
        type=Path,
        help="csv of id, name and email, or what Canvas or Moodle exports",
    )
    command.add_argument(
        "--key", type=Path, help="file of the course key, for numbers of each student"
    )


def _release(given) -> list[str]:
    from coursework.release import release

    written = release(given.masters, given.to, given.roster, given.key)
    return [f"{len(written)} files in {given.to}"]


def _grade(given) -> list[str]:
    from coursework.grade import grade

    return grade(
        given.submissions,
        given.to,
        given.masters,
        given.workers,
        given.scheduler,
        given.only,
        given.roster,
        given.key,
        not given.no_sandbox,
    )


def _points(given) -> list[str]:
    from coursework.points import all_parts, import_points, write_template
    from coursework.roster import read_roster

    parts = all_parts(given.masters)
    if (given.table is None) == (given.template is None):
        raise ValueError("name either a table to import or a --template to write")
    if given.table:
        return [f"{import_points(given.report, given.table, parts)} rows imported"]
    people = read_roster(given.roster) if given.roster else []
    names = {student.id: student.name for student in people}
    count = write_template(given.report, given.template, parts, names)
    return [f"{count} rows to fill in, in {given.template}"]


def _report(given) -> list[str]:
    from coursework.report import report

    notes = report(
        given.report, given.masters, given.roster, given.canvas, given.moodle
    )
    return [*notes, f"written to {given.report}: open class.html"]


if __name__ == "__main__":
    sys.exit(main())

"""Workflows hold no logic: their steps are make targets, which run anywhere."""

import re
import subprocess
import tomllib
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
import yaml

from tests.guards.notebook import ROOT

# What a bare machine needs before make can do the rest.
BOOTSTRAPS = [
    "sudo apt-get update",
    "sudo apt-get install --yes bubblewrap",
    "sudo sysctl --write kernel.apparmor_restrict_unprivileged_userns=0",
]
MAY = {
    ("package", "upload"): {"contents": "read", "id-token": "write"},
    ("pages", "deploy"): {"pages": "write", "id-token": "write"},
}
MAKE = re.compile(
    r'make ([a-z-]+)((?: [A-Z]+=(?:"[^"]*"|\$\{\{ [\w.]+ \}\}|[\w./-]+))*)'
)
PATHS = sorted(ROOT.glob(".github/workflows/*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf8"))


def faults(name: str, flow: dict) -> list[str]:
    """What is wrong with a workflow."""
    found = []
    # YAML 1.1 reads the key `on` as the truth.
    if "pull_request_target" in flow[True]:
        found.append("runs a stranger's code with the rights of the repository")
    if "workflow_run" in flow[True] and "workflow_run.event == 'push'" not in str(flow):
        found.append("may deploy what a stranger's pull request made")
    if flow.get("permissions") != {"contents": "read"}:
        found.append("may more than read")
    if flow.get("defaults") != {"run": {"shell": "bash"}}:
        found.append("its shell is not bash, which stops at a failure in a pipe")
    if "group" not in flow.get("concurrency", {}):
        found.append("runs beside itself")
    for title, job in flow["jobs"].items():
        found += [f"{title}: {fault}" for fault in _job_faults(name, title, job)]
    return found


def _job_faults(name: str, title: str, job: dict):
    if job.get("permissions", {}) != MAY.get((name, title), {}):
        yield f"may {job.get('permissions')}"
    if "timeout-minutes" not in job:
        yield "has no limit of time"
    if not re.search(r"-\d", job["runs-on"]) and job["runs-on"] != "${{ matrix.os }}":
        yield f"{job['runs-on']} is another machine next year"
    for step in job["steps"]:
        if "uses" in step and not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]):
            yield f"{step['uses']} is not pinned to a commit"
        if "shell" in step:
            yield "a step has a shell of its own"
        if "run" in step and step["run"] not in BOOTSTRAPS:
            yield from _command_faults(step["run"])


def _command_faults(command: str):
    match = MAKE.fullmatch(command)
    if not match:
        yield f"{command!r} is no make target"
        return
    if match[1] not in re.findall(r"(?m)^([a-z-]+):", MAKEFILE):
        yield f"the Makefile has no target {match[1]}"
    for variable in re.findall(r"([A-Z]+)=", match[2]):
        if f"$({variable})" not in MAKEFILE:
            yield f"the Makefile has no variable {variable}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_workflow_is_in_order(path):
    assert faults(path.stem, load(path)) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_an_action_says_which_version_its_commit_is(path):
    text = path.read_text(encoding="utf8")
    assert text.count("uses: ") == len(
        re.findall(r"uses: \S+ # v\d+\.\d+\.\d+\n", text)
    )


def test_one_action_has_one_commit():
    texts = "".join(path.read_text(encoding="utf8") for path in PATHS)
    pins = set(re.findall(r"uses: ([^@]+)@(\S+ # \S+)", texts))
    assert max(Counter(action for action, _ in pins).values()) == 1


GOOD = """
on: [push]
permissions: {contents: read}
concurrency: {group: g}
defaults: {run: {shell: bash}}
jobs:
  one:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789
      - run: sudo apt-get update
      - run: make package-test VERSIONS=${{ matrix.versions }}
      - run: make newest REPORT="$GITHUB_STEP_SUMMARY"
"""


def test_a_good_workflow_has_no_fault():
    assert faults("any", yaml.safe_load(GOOD)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("[push]", "[pull_request_target]", "a stranger's code"),
        ("[push]", "[workflow_run]", "a stranger's pull request"),
        ("contents: read", "contents: write", "may more than read"),
        ("permissions: {contents: read}", "", "may more than read"),
        ("shell: bash", "shell: sh", "its shell"),
        ("group: g", "", "runs beside itself"),
        ("timeout-minutes: 5", "", "one: has no limit of time"),
        ("timeout-minutes: 5", "permissions: {issues: write}", "one: may {'issues'"),
        ("ubuntu-24.04", "ubuntu-latest", "is another machine next year"),
        ("checkout@0123456789", "checkout@", "is not pinned"),
        ("checkout@0123456789012345678901234567890123456789", "checkout@v5", "not pin"),
        ("make package-test", "make packages", "has no target packages"),
        ("make package-test", "make -k package-test", "is no make target"),
        ("VERSIONS=", "VERSION_=", "is no make target"),
        ("REPORT=", "OUTPUT=", "has no variable OUTPUT"),
        ("sudo apt-get update", "sudo apt-get upgrade", "is no make target"),
        ("make newest", "pip install x && make newest", "is no make target"),
        ('"$GITHUB_STEP_SUMMARY"', "$(date)", "is no make target"),
        ("- run: sudo", "- shell: sh\n        run: sudo", "a shell of its own"),
    ],
)
def test_a_planted_fault_is_noticed(old, new, fault):
    assert old in GOOD
    found = faults("any", yaml.safe_load(GOOD.replace(old, new)))
    assert any(fault in each for each in found), found


# Which machines


def cells(job: dict) -> set[tuple[str, str, str]]:
    """System, Python and versions of each run; exact ones where none are chosen."""
    matrix = dict(job["strategy"]["matrix"])
    included = [
        (cell["os"], cell["python"], cell.get("versions", "exact"))
        for cell in matrix.pop("include", [])
    ]
    crossed = product(*matrix.values()) if matrix else []
    return {(os.split("-")[0], *rest) for os, *rest in [*included, *crossed]}


SYSTEMS = ["ubuntu", "macos", "windows"]
PYTHONS = ["3.11", "3.12", "3.13"]
ASKED = {
    ("ubuntu", "3.11", "exact"),
    *product(SYSTEMS, PYTHONS, ["newest"]),
    *product(SYSTEMS, ["3.11"], ["oldest"]),
}


def test_the_tests_run_on_all_machines():
    jobs = load(ROOT / ".github/workflows/tests.yml")["jobs"]
    assert set().union(*map(cells, jobs.values())) == ASKED
    for job in jobs.values():
        commands = [step["run"] for step in job["steps"] if "run" in step]
        exact = {versions for _, _, versions in cells(job)} == {"exact"}
        assert ("make test" in commands) == exact
        assert any("${{ matrix.versions }}" in each for each in commands) != exact


def test_the_pythons_are_those_of_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    low, high = re.findall(r"3\.\d+", settings["project"]["requires-python"])
    assert PYTHONS[0] == low
    assert int(PYTHONS[-1][2:]) + 1 == int(high[2:])


# What the targets do


def made(target: str, folder: Path, *words: str) -> str:
    """What make would run, in a copy of what the Makefile reads."""
    for name in ("Makefile", "pyproject.toml", "requirements.txt", "_config.yml"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    command = ["make", "--silent", *words, target]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_oldest_versions_are_the_lower_bounds(tmp_path):
    made("build/oldest.txt", tmp_path)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    bounds = [each.split(">=") for each in settings["project"]["dependencies"]]
    assert (tmp_path / "build" / "oldest.txt").read_text().splitlines() == [
        f"{name}=={oldest}.*" for name, oldest in bounds
    ]


def test_every_room_of_the_package_is_tested():
    command = ["make", "--dry-run", "package-test"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    tests = re.findall(r"tests/test_(\w+)\.py", said)
    rooms = {path.stem.lstrip("_") for path in ROOT.glob("src/genaudit/[a-z_]*")}
    rooms -= {"init__", "pycache__", "book"}
    # The visible checks of exercises are tested with their masters.
    for room in rooms - {"exercises"}:
        assert any(re.match(rf"{room}(_|$)", name) for name in tests), room


def test_the_newest_versions_are_not_pinned(tmp_path):
    said = made("newest", tmp_path, "--dry-run")
    (tmp_path / "build").mkdir()
    (rule,) = [line for line in said.splitlines() if line.startswith("sed")]
    subprocess.run(["bash", "-c", rule], cwd=tmp_path, check=True)
    names = (tmp_path / "build" / "newest.txt").read_text().splitlines()
    needed = {"torch", "numpy", "scipy", "matplotlib", "nbclient", "ipykernel"}
    assert needed <= set(names)
    assert all(re.fullmatch(r"[\w-]+", name) for name in names)

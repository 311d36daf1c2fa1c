"""What `make dist` builds for the package index: the whole package, and no more."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes, policy

import pytest

from tests.guards.notebook import ROOT
from tools.release import read

# Built by the same backend, without the network that an environment of its own needs.
SDIST = "from setuptools import build_meta; build_meta.build_sdist('dist')"
NOT_OURS = (".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "*.egg-info")
MADE = ("_build", "build", "dist", "mutants")
BESIDE = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml"}
BESIDE |= {"setup.cfg"}


def run(*command, cwd):
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)


def build_sdist(tree):
    """Build a tree's sdist and unpack it."""
    run(sys.executable, "-c", SDIST, cwd=tree)
    (archive,) = (tree / "dist").glob("genaudit-*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tree / "dist", filter="data")
    return archive.with_name(archive.name.removesuffix(".tar.gz"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The whole tree, so that everything is there that must not get in."""
    copy = tmp_path_factory.mktemp("dist") / "tree"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_OURS, *MADE))
    return copy


@pytest.fixture(scope="module")
def sdist(tree):
    return build_sdist(tree)


@pytest.fixture(scope="module")
def wheel(sdist):
    """The wheel that the sdist alone gives."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", "..", "."]
    run(*pip, *build, cwd=sdist)
    (path,) = sdist.parent.glob("genaudit-*.whl")
    with zipfile.ZipFile(path) as file:
        yield file


@pytest.fixture(scope="module")
def metadata(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
    return message_from_bytes(wheel.read(name), policy=policy.default)


def package_files():
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "genaudit").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def surplus(sdist):
    """What a sdist holds and the package does not need."""
    files = {p.relative_to(sdist).as_posix() for p in sdist.rglob("*") if p.is_file()}
    wanted = BESIDE | {f"src/{name}" for name in package_files()}
    return {name for name in files - wanted if ".egg-info/" not in name}


def test_the_sdist_holds_the_package_alone(sdist):
    assert surplus(sdist) == set()


@pytest.mark.parametrize("folder", ["solutions", "tests", "chapters", "src/coursework"])
def test_what_must_not_get_in_is_seen(tree, tmp_path, folder):
    copy = shutil.copytree(
        tree, tmp_path / "tree", ignore=shutil.ignore_patterns("dist")
    )
    with (copy / "MANIFEST.in").open("a", encoding="utf8") as rules:
        rules.write(f"graft {folder}\n")
    assert {name.split("/")[0] for name in surplus(build_sdist(copy))} == {
        folder.split("/")[0]
    }


def test_the_sdist_gives_a_wheel_of_the_whole_package(wheel, metadata):
    info = f"genaudit-{metadata['Version']}.dist-info"
    names = {name for name in wheel.namelist() if not name.startswith(f"{info}/")}
    assert names == package_files()
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


def test_the_metadata_name_this_release(metadata):
    stamp = read(ROOT)
    home = f"https://{stamp.owner}.github.io/{stamp.name}/"
    code = f"https://github.com/{stamp.repo}"
    assert (metadata["Name"], metadata["Version"]) == ("genaudit", stamp.version)
    assert dict(url.split(", ") for url in metadata.get_all("Project-URL")) == {
        "Homepage": home,
        "Documentation": f"{home}chapters/api/index.html",
        "Source": code,
        "Changelog": f"{code}/blob/{stamp.tag}/CHANGELOG.md",
        "Issues": f"{code}/issues",
    }
    assert (ROOT / "chapters" / "api" / "index.md").exists()


def test_the_metadata_say_what_it_is(metadata):
    assert metadata["License-Expression"] == "MIT"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert {"diffusion", "education"} <= set(metadata["Keywords"].split(","))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    low, high = re.findall(r"3\.(\d+)", settings["project"]["requires-python"])
    assert {
        name.rpartition(" ")[2]
        for name in metadata.get_all("Classifier")
        if name.startswith("Programming Language :: Python :: 3.")
    } == {f"3.{minor}" for minor in range(int(low), int(high))}


def test_the_readme_can_be_read_away_from_the_repository(metadata):
    text = (ROOT / "README.md").read_text(encoding="utf8")
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_content().strip() == text.strip()
    assert relative_links(text) == []
    assert relative_links("[a](b.md) ![c](https://d) [e](#f)") == ["b.md"]


def relative_links(text):
    return [
        goal
        for goal in re.findall(r"\]\(([^)]+)\)", text)
        if not goal.startswith(("https://", "#"))
    ]

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

# The first of these that is new enough, unless the caller names one.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo "$$python" && break; done)
VERSION := $(shell "$(PYTHON)" -c \
	'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
# What a rendered page needs; the rest of requirements.txt is for pins and tests.
BOOK := jupyter-book sphinx-book-theme sphinxcontrib-katex mini-racer fonttools griffelib
PAGE := _build/html/index.html
# Folders count too: their time changes when a file goes away; and commits, which stand
# in the footers.
PAGES := _config.yml _toc.yml $(wildcard .git/logs/HEAD) \
	$(shell find chapters exercises tools/bookext \
	src/genaudit -name '.*' -prune -o -name __pycache__ -prune -o -print 2>/dev/null)
# The package's own tests: those named after one of its modules.
ROOMS := $(patsubst _%,%,$(notdir $(basename $(wildcard src/genaudit/*))))
PACKAGE_TESTS := $(wildcard $(ROOMS:%=tests/test_%.py) $(ROOMS:%=tests/test_%_*.py))
TESTERS := pytest pytest-xdist hypothesis ipykernel nbclient nbformat nbval
# Other environments than the pinned one: the oldest or the newest allowed versions.
VERSIONS ?= newest
OTHER := build/$(VERSIONS)-$(VERSION)
NEWEST := pip install --quiet --disable-pip-version-check \
	--upgrade --upgrade-strategy eager
REPORT ?= /dev/null
# Colab's Python, wherever it is called so.
PYTHON312 ?= $(shell for python in python3.12 python3 python "$(PYTHON)"; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' \
	2>/dev/null && echo "$$python" && break; done)
# The notebooks to run as in Colab: all of them, unless the caller names some.
ONLY ?=
# One thread a process: two test workers share two cores, and sums keep their order.
export OMP_NUM_THREADS ?= 1

.PHONY: help book pdf site lighthouse times test package-test newest colab pins \
	mutants bench publish dist upload clean python

help:
	@echo 'make book     build the pages and print the path of the one to open'
	@echo 'make pdf      print the whole book as one PDF'
	@echo 'make site     put pages, PDF and an archive for offline reading into build/site'
	@echo 'make test     build the pages, re-run every chapter and run all tests'
	@echo 'make package-test  run the tests of the package with other versions of what it'
	@echo '              needs: VERSIONS=oldest or, as without it, VERSIONS=newest'
	@echo 'make newest   re-run every chapter with the newest versions, say what moved'
	@echo 'make colab    run every notebook alone with the versions of Colab, on Python 3.12;'
	@echo '              PYTHON312=path names it, ONLY=chapters/gan.ipynb chooses a notebook'
	@echo 'make pins     re-run every chapter, rewrite its outputs, say what moved'
	@echo 'make mutants  plant 300 small faults in the package, count what the tests miss'
	@echo 'make times    time every chapter, for the page of run times and the footers'
	@echo 'make lighthouse  measure the heaviest pages as a phone and a desktop load them'
	@echo 'make bench    time the ensemble of networks and the samplers against plain loops'
	@echo 'make publish  commit the public side to a clone of its repository, CLONE=path'
	@echo 'make dist     build the package as PyPI wants it, into build/dist'
	@echo 'make upload   the same, and upload it'
	@echo 'make clean    remove what the others made'
	@echo 'Needs Python 3.11 to 3.13; PYTHON=python3.12 chooses one.'

book: $(PAGE)
	@echo 'Open $(CURDIR)/$(PAGE)'

# Always from nothing: a build over an old one keeps pages whose chapter has gone, and
# can succeed where a fresh one fails.
$(PAGE): $(PAGES) .venv/book-$(VERSION)
	@rm -rf _build
	@$(BIN)/jupyter-book build . -W --keep-going -n --quiet || { rm -rf _build; exit 1; }
	@touch $@

test: $(PAGE) .venv/test-$(VERSION)
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/python -m pytest --nbval --nbval-current-env \
		--nbval-sanitize-with tests/sanitize.cfg -n 2 --dist loadfile chapters tests

package-test: build/oldest.txt | python
	"$(PYTHON)" -m venv $(OTHER)
	$(OTHER)/$(SCRIPTS)/$(NEWEST) $(if $(filter oldest,$(VERSIONS)),-c build/oldest.txt) \
		$(TESTERS) --editable .
	$(OTHER)/$(SCRIPTS)/python -m pytest -n 2 --dist loadfile $(PACKAGE_TESTS)

# The last patch of each oldest minor version.
build/oldest.txt: pyproject.toml
	@mkdir -p build
	sed -n '/^dependencies/,/^]/s/^ *"\(.*\)>=\(.*\)",$$/\1==\2.*/p' $< > $@

# REPORT gets what is printed too.
newest: | python
	"$(PYTHON)" -m venv build/newest-$(VERSION)
	sed -n '/^# The package/,/^# Tests/s/==.*//p' requirements.txt > build/newest.txt
	build/newest-$(VERSION)/$(SCRIPTS)/$(NEWEST) -r build/newest.txt --editable .
	build/newest-$(VERSION)/$(SCRIPTS)/python -m tools.newest | tee -a "$(REPORT)"

# What the host of the pages gets.
site: pdf
	$(BIN)/python -m tools.site build/site

pdf: $(PAGE) .venv/test-$(VERSION)
	$(BIN)/python -m tools.pdf

lighthouse: $(PAGE) .venv/test-$(VERSION)
	$(BIN)/python -m tools.lighthouse

times: .venv/test-$(VERSION)
	$(BIN)/python -m tools.times

# The debugger of the kernels would give advice.
colab: build/colab/ready
	PYDEVD_DISABLE_FILE_VALIDATION=1 \
		build/colab/bin/python -m tools.colab $(ONLY) | tee -a "$(REPORT)"

build/colab/ready: tools/colab.txt
	$(if $(PYTHON312),,$(error Python 3.12 is needed, as in Colab; \
		PYTHON312=path says where it is))
	rm -rf build/colab
	"$(PYTHON312)" -m venv build/colab
	build/colab/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

pins: .venv/test-$(VERSION)
	$(BIN)/python -m tools.pins

mutants: .venv/mutants-$(VERSION)
	$(BIN)/python -m tools.mutants

bench: .venv/test-$(VERSION)
	$(BIN)/python bench/ablation.py
	$(BIN)/python bench/sampler.py

# The clone's next commit is the export, under the tag that the book is stamped with.
# What did not reach the remote is done again.
TAG = $(shell sed -n 's/^  branch: //p' _config.yml)
PUBLIC = git --git-dir="$(CLONE)/.git" --work-tree=build/public
publish: .venv/test-$(VERSION)
	$(if $(CLONE),,$(error CLONE=path must name a clone of the public repository))
	! grep --quiet OWNER/REPO _config.yml || \
		{ echo 'nobody owns OWNER/REPO: stamp the release first'; exit 1; }
	test -z "$$(git -C "$(CLONE)" status --porcelain)" || \
		{ echo '$(CLONE) has changes of its own: take a fresh clone'; exit 1; }
	test -z "$$(git -C "$(CLONE)" ls-remote --tags origin $(TAG))" || \
		{ echo '$(TAG) is published already: stamp the next release'; exit 1; }
	rm -rf build/public
	$(BIN)/python -m tools.public build/public
	$(PUBLIC) add --all --force
	$(PUBLIC) commit --quiet --allow-empty --message 'Release $(TAG)'
	$(PUBLIC) tag --force $(TAG)
	git -C "$(CLONE)" reset --quiet --hard
	$(PUBLIC) push --quiet --atomic origin HEAD:main $(TAG)

# What is committed, so that nothing else that lies about gets in.
dist: .venv/dist-$(VERSION)
	rm -rf build/dist build/source
	mkdir -p build/source
	git archive HEAD | tar -x -C build/source
	$(BIN)/python -m build --no-isolation --outdir build/dist build/source
	$(BIN)/twine check --strict build/dist/*

# A workflow that PyPI trusts needs no password; elsewhere twine asks for a token.
upload: dist
	$(BIN)/twine upload build/dist/*

clean:
	rm -rf .venv _build build mutants src/*.egg-info

python:
	$(if $(filter 3.11 3.12 3.13,$(VERSION)),,$(error Python 3.11 to 3.13 is needed: \
		$(or $(PYTHON),python3) $(if $(VERSION),is $(VERSION),is not there); \
		PYTHON=path names another))
	@:

.venv/python-$(VERSION): | python
	rm -rf .venv
	"$(PYTHON)" -m venv .venv
	@touch $@

.venv/book-$(VERSION): requirements.txt .venv/python-$(VERSION)
	$(BIN)/pip install --quiet --disable-pip-version-check -c requirements.txt $(BOOK)
	@touch $@

.venv/test-$(VERSION): requirements.txt pyproject.toml .venv/book-$(VERSION)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps \
		--no-build-isolation --editable .
	@touch $@

.venv/dist-$(VERSION): requirements.txt .venv/python-$(VERSION)
	$(BIN)/pip install --quiet --disable-pip-version-check -c requirements.txt \
		setuptools build==1.6.1 twine==7.0.0
	@touch $@

.venv/mutants-$(VERSION): .venv/test-$(VERSION)
	$(BIN)/pip install --quiet --disable-pip-version-check -c requirements.txt \
		mutmut==3.8.1
	@touch $@

# Everything happens in .venv, which the first target makes. tools/workspace.py does the work and skips what
# has not changed.
PYTHON ?= python3
ARGS ?=
export PLUGRAD_PURE ORACLE BACKENDS MINUTES SEED

WORKSPACE = $(PYTHON) tools/workspace.py

.PHONY: help demo test torture lint docs bench compare packages packages-torch dist install clean
.DEFAULT_GOAL := help

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16
	@echo
	@echo 'PYTHON=python3.12      the interpreter .venv is made with (3.11 or later)'
	@echo 'PLUGRAD_PURE=1         install the core interpreted, without compiling it'
	@echo 'PLUGRAD_BACKEND=jax    demo: the backend to install and to train on'
	@echo 'BACKENDS="cpu jax"     test: the backends to install and to test, by default all'
	@echo 'ORACLE=torch           test: install PyTorch and compare with it'
	@echo 'MINUTES=5 SEED=1       torture: how long, and which run to repeat'
	@echo 'ARGS="..."             more arguments for pytest, the demo or the benchmarks'

demo: ## Install into .venv and train the digits classifier
	@$(WORKSPACE) demo $(ARGS)

test: ## Install into .venv and run the suite, compiled and interpreted
	@$(WORKSPACE) test $(ARGS)

torture: ## Hard use at random against PyTorch; prints a program for each finding
	@$(WORKSPACE) torture $(ARGS)

lint: ## ruff, mypy --strict, pyright on the documentation's code, the layers of docs/design.md
	@$(WORKSPACE) lint

docs: ## Build the documentation site, strictly, into build/site, and try it in a browser
	@$(WORKSPACE) docs $(ARGS)

bench: ## Measure against PyTorch (if installed) and NumPy; writes docs/performance.md
	@$(WORKSPACE) bench $(ARGS)

compare: ## Measure against JAX, HIPS autograd and others; writes docs/comparison.md
	@$(WORKSPACE) compare $(ARGS)

packages: ## Build wheels, install them far from the checkout, certify the backends there
	@$(PYTHON) tools/packages.py $(ARGS)

packages-torch: ## Packages from PyPI that were written for PyTorch; writes docs/packages.md with ORACLE=torch
	@$(WORKSPACE) packages-torch $(ARGS)

dist: ## Build every sdist and wheel into dist/ and check them (docs/releasing.md)
	@$(PYTHON) tools/dist.py $(ARGS)

install: ## Only install into .venv
	@$(WORKSPACE) install

clean: ## Back to a fresh clone: removes .venv, builds, generated code and caches
	@$(WORKSPACE) clean

"""Checkouts of commits in temporary folders, compiled and ready to be imported from.

Covers: naming a commit, writing its files, compiling its loops. Does not cover: measuring (``ab``).

A commit is written by ``git archive``: nothing of the repository changes, and a run that is killed leaves nothing
in it.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from dboost.errors import DataError, UsageError
from lab.benchmarks.process import ROOT

COMPILE_SECONDS = 3600.0
"""A checkout has all its loops to compile: minutes on an idle machine."""


def git(*arguments: str, repository: Path = ROOT) -> bytes:
    """What a command of git prints."""
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise DataError(f"git {arguments[0]} failed: {lines[-1] if lines else 'no word'}", hint="run it in a checkout")
    return done.stdout


def commit_of(name: str, repository: Path = ROOT) -> str:
    """The abbreviated commit that a name stands for: a hash, a branch, a tag, HEAD~3."""
    try:
        found = git("rev-parse", "--verify", "--quiet", "--short=12", f"{name}^{{commit}}", repository=repository)
    except DataError:
        raise UsageError(f"{name!r} names no commit", hint="give a hash, a branch, a tag or HEAD~1") from None
    return found.decode().strip()


def current(repository: Path = ROOT) -> str:
    """The commit of the checkout, with a ``+`` where tracked files differ from it."""
    changed = git("status", "--porcelain", "--untracked-files=no", repository=repository).strip()
    return commit_of("HEAD", repository) + ("+" if changed else "")


def check_out(commit: str, folder: Path, repository: Path = ROOT) -> Path:
    """Write the files of a commit into a new folder; returns it."""
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", commit, repository=repository))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def compile_all(trees: Mapping[str, Path], seconds: float = COMPILE_SECONDS) -> None:
    """Compile the loops of every checkout, all of them at once."""
    running = {}
    try:
        for side, tree in trees.items():
            environment = {**os.environ, "PYTHONPATH": str(tree)}
            running[side] = subprocess.Popen(
                [sys.executable, "-m", "dboost.warm"],
                cwd=tree,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        for side, child in running.items():
            _, said = child.communicate(timeout=seconds)
            if child.returncode != 0:
                lines = said.decode(errors="replace").strip().splitlines()
                raise DataError(f"{side} cannot be compiled: {lines[-1] if lines else 'no word'}")
    except subprocess.TimeoutExpired:
        raise DataError(f"compiling took more than {seconds:.0f} s") from None
    finally:
        for child in running.values():
            if child.poll() is None:
                child.kill()
                child.wait()

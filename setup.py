"""Which folders are installed under which name; everything else about the project is in pyproject.toml.

A list in pyproject.toml would have to name every sub-package by hand, because the folder ``pipelines`` is installed as
``dboost_pipelines`` and setuptools cannot search and rename at once.
"""

from setuptools import find_packages, setup

library = ["dboost", *(f"dboost.{name}" for name in find_packages("dboost"))]
pipelines = ["dboost_pipelines", *(f"dboost_pipelines.{name}" for name in find_packages("pipelines"))]

setup(packages=library + pipelines, package_dir={"dboost": "dboost", "dboost_pipelines": "pipelines"})

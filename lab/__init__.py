"""What we run ourselves and do not install: benchmarks, reproductions of the papers, campaigns of faults, tables.

Each has a name (``python -m lab NAME``, from a checkout). Modules use ``dboost`` and, of the command line, settings,
console and pages. They name the folder ``pipelines``, which a checkout has beside this one, and not the installed
``dboost_pipelines``, which may be of another version. Nothing in either imports ``lab``.
"""

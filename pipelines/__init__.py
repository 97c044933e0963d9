"""Runs: the command line, the demo, and what they share. Installed as ``dboost_pipelines``.

Owns paths, settings, printing and exit codes; owns no algorithm. It uses the public names of ``dboost``; nothing in
``dboost`` imports it.
"""

"""Runs that one file describes: the file, the folder, the stages, what is done already."""

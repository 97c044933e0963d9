"""Steps for groups of columns, all of whose weights a penalty ties together."""

"""The totally corrective loop of Duchi & Singer (2009): score, certify, add, solve, prune."""

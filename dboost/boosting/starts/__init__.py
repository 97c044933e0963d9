"""Where the rounds of a fit begin, other than at zero."""

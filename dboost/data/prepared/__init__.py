"""Documents and tables brought into the columns that a fit runs over."""

"""Files and folders that are read and written: the only part that opens files to write."""

"""Whether the short lane of tests finds the faults that all tests find."""

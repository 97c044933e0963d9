"""AdaBoost+L1: AdaBoost within an l1 budget that grows."""

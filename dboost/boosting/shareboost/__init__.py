"""ShareBoost (Shalev-Shwartz, Wexler & Shashua 2011)."""

"""JointBoost: stumps that some of the classes share."""

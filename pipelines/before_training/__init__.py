"""What a training needs against what there is, told before it begins: memory, seconds of a pass, bytes of a round."""

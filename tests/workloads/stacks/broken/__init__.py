"""What a test breaks of a side to see its proof fail: the same in every stack that has the framework."""

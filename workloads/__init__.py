"""Ground floor: runs inside a stack, proves or measures one cell, writes one result.

Standard library, numpy and the stack's own packages; Python 3.6 and up.
"""

SCHEMA = 1

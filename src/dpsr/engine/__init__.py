"""One idea, three engines: every stage is a pass over blocks of users that adds up item-side sums.

Item-side arrays go in, item-side partial sums come out, user-side rows stay in the order of the users. In memory, out
of core and on Spark the passes and the kernels inside them are the same.
"""

from dpsr.engine.table import Block, BlockResult, MemoryTable, PassResult, Table, Task

__all__ = ["Block", "BlockResult", "MemoryTable", "PassResult", "Table", "Task"]

"""Many jobs, each once: what is to be done, in which processes, and what is kept between runs.

jobs     what is to be done, and the key under which its result is kept
store    results and predictions on disk
pool     processes that can be stopped and can only hurt themselves
results  what is there is kept, what is missing is run
"""

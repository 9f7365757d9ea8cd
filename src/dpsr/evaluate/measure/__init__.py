"""One job, start to end: numbers in, rows out. Each runs in a process of its own (`runner.pool`).

    METHOD      a method fitted and scored: what it protects, how well it predicts, what it took
    FORECAST    the accuracy that our pipeline's plan expects of a training mask
    LIKES       a method of lists fitted on interactions and scored
    LEARNERS    learners trained on one table, scored on raw held-out ratings
    ATTACK      attacks on one method, or on mechanisms alone
    LIKES_ATTACK    attacks on one method of lists

A measure is written `module:function`: a function of a job and of the file in which it may save arrays that gives rows.
"""

METHOD = "dpsr.evaluate.measure.method:measure_method"
FORECAST = "dpsr.evaluate.measure.method:measure_forecast"
LIKES = "dpsr.evaluate.measure.likes:measure_likes"
LEARNERS = "dpsr.evaluate.measure.learners:measure_learners"
ATTACK = "dpsr.evaluate.measure.attack:measure_attack"
LIKES_ATTACK = "dpsr.evaluate.measure.likes:measure_likes_attack"

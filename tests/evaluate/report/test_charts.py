"""Charts: what is written on them is inside them."""

import pytest

from dpsr.evaluate.likes.protocol import FOLDED_IN
from dpsr.evaluate.measure import LIKES, METHOD
from dpsr.evaluate.protocol import ERRORS_ONLY
from dpsr.evaluate.report.charts import draw
from dpsr.evaluate.report.tidy import tidy
from dpsr.evaluate.runner.jobs import Job
from dpsr.evaluate.sets import RatingSet
from dpsr.evaluate.studies.frontier.people import PEOPLE_UNITS
from dpsr.evaluate.studies.frontier.picture import VALUES, frontier_chart
from dpsr.evaluate.studies.likes.tables import LOOK as LISTS

LOOKS = {"value": VALUES, "likes": LISTS} | {unit: one.look for unit, one in PEOPLE_UNITS.items()}


@pytest.mark.parametrize("name", LOOKS)
def test_the_legend_of_a_frontier_with_every_method_is_inside_the_picture_and_below_the_axes(name):
    look, epsilons = LOOKS[name], (1.0, 5.0)
    jobs = [(m, e) for m in look.lines for e in epsilons] + [(m, None) for m in look.levels]
    known = RatingSet("ml-latest-small")
    measure, protocol = (LIKES, FOLDED_IN) if look is LISTS else (METHOD, ERRORS_ONLY)
    row = {"protocol": protocol, look.number: 0.9}
    rows = tidy(measure, [(Job(measure, known, m, e, 0, 0, 0, protocol), [row]) for m, e in jobs])
    figure = draw(frontier_chart(rows, "ml-latest-small", epsilons, look))
    figure.canvas.draw()
    (legend,), (axes,), page = figure.legends, figure.axes, figure.bbox
    written = legend.get_window_extent()
    assert len(legend.get_texts()) == len(look.lines) + len(look.levels) + bool(look.targets)
    assert 0 <= written.x0 < written.x1 <= page.width
    assert 0 <= written.y0 < written.y1 <= axes.get_tightbbox().y0

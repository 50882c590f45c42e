"""The numbers of a strength of supervision and of its automatic choice, each with its reason.

Where no other reason is given they were set by hand, on some draws of the labels of the sets in
`benchmarks/supervision.py`; the results there are from other draws, and from sets not looked at.
"""

from typing import NamedTuple

import numpy as np

# Keeps a quotient finite where what it divides by is zero.
TINY = np.finfo(float).tiny


class Rule(NamedTuple):
    """What stage 1, stage 2, the trials, the votes and the criterion count with."""

    # Stage 1. Principal directions that it sees: 300 and 600 added nothing on any set, but there
    # must be some for each component.
    directions: int = 150
    directions_per_component: int = 3
    # Labelled rows that it sees: some hundred coefficients are certain long before.
    most_rows: int = 50_000
    # Penalties, in mean squared lengths of a row: from none to nothing but the mean.
    penalties: tuple[float, ...] = tuple(10.0 ** np.arange(-4, 3.25, 0.5))
    # More rows decide as well between every other penalty, at half the cost.
    many_rows: int = 200
    # With numbers as y, lower penalties interpolate the few rows of a table whose columns have
    # heavy tails; higher ones shrink spectra, which a handful of rows determine.
    least_penalty_of_numbers: float = 1e-3
    # Folds in which so few rows with numbers show what predictions of a new row miss, and digits
    # of the size of a row to which equal rows agree.
    number_folds: int = 10
    size_digits: int = 9
    # Share of the covariance of the residuals that is made spherical, as labelled rows are few.
    shrinkage: float = 0.1
    # The same for probabilities of classes, which lean on all of it: by hand, between a tenth,
    # which is far too sure, and a sphere, which forgets what outputs have in common.
    predictive_shrinkage: float = 0.5
    # Factors by which it is widened: from none to nearly even probabilities.
    widenings: tuple[float, ...] = tuple(2.0 ** np.arange(0, 8, 0.5))

    # Share of the members of a chunk that are taken to be none: right chunks then lose .010 of
    # accuracy on five sets, chunks with a fifth of wrong members .045 in the place of .079 of
    # what they gain (`benchmarks/sppca_chunks.py`).
    wrong_members: float = 0.1

    # Components of the map that probabilities of classes are read from, however many are asked
    # for: log losses are .611, .596 and .591 with 10, 20 and 40, which cost more
    # (`benchmarks/calibration.py --heads`).
    wide_components: int = 20

    # Stage 2. Shares of the energy below this are rounding, their directions are empty.
    no_energy: float = 1e-14
    # EM for the noise of x alone starts near its end: so many steps, down to this change.
    noise_steps: int = 200
    noise_change: float = 1e-12
    # Where x has gaps, s = 1 would leave the completed labels without noise and EM standing still.
    largest_share: float = 1 - 1e-5

    # Candidates: strengths on all directions and on few, as few labels cannot tell many apart.
    strengths: tuple[float, ...] = (0.1, 0.25, 0.5, 0.9, 0.99)
    few_directions: int = 40
    few_directions_per_component: int = 2
    # Their maps are sought among so many more directions of x, and of the labels, than there are
    # components, with one step of the power method: of eight sets distances are then right to .001
    # in the median and .01 to .04 in the worst map; with none to .01 and .4.
    map_margin: int = 4

    # Trials: in each a tenth of the rows, or a fifth of those of half of the classes, lose their
    # label.
    n_trials: int = 10
    one_row_of: int = 5
    # So many classes compete all together, and at least four: three are too easy to rank maps.
    few_classes: int = 6
    least_contest: int = 4
    # Fewer numbers say nothing of rows left out.
    least_numbers: int = 5
    # What bounds the cost: labelled rows, unlabelled rows, and distances between them.
    most_labelled: int = 2000
    most_unlabelled: int = 1500
    most_distances: int = 2_000_000
    # Widths of the soft nearest neighbour, in medians of the least distances.
    widths: tuple[float, ...] = tuple(2.0 ** np.arange(-4, 7))
    # A regression on few rows needs some penalty, and no single row may decide: its error counts
    # as three standard deviations at most, its loss as so many times that of chance.
    regression_penalty: float = 0.01
    largest_error: float = 9.0
    largest_loss: float = 3.0
    # Losses are relative to that of s = 0, or to this share of chance's where s = 0 has none.
    least_level: float = 0.2
    # Differences below this share of the largest value are rounding; so is less of a prediction
    # that is left to the others where a row is left out.
    rounding: float = 1e-9

    # Evidence, in standard errors: with these, random labels on pure noise are left alone in 92
    # or more of 100 fits (`benchmarks/supervision_noise.py`).
    finds_labels: float = 1.8
    finds_in_trials: float = 2.7
    beats_pca: float = 2.0
    # Labels found so surely count even where the trials, which lack some of them, prefer s = 0.
    finds_surely: float = 3.5

    # Clusters of unlabelled rows, where the labels alone are no evidence. They are sought on so
    # many leading directions, with so many rows for each; two normal clusters closer than three
    # deviations, and one that is not normal, are easily taken for each other.
    cluster_directions: int = 10
    rows_per_cluster_direction: int = 20
    # So many rows show what there is, after some steps of EM from every start, more from the best.
    cluster_rows: int = 500
    cluster_trial_steps: int = 10
    cluster_steps: int = 50
    # They end before where the log likelihood rises by no more than this share: rounding.
    cluster_change: float = 1e-13
    # With fewer labelled rows than this in the clusters of their classes after the trial steps,
    # the others never brought all of them there: 69 fits to 23 sets, .06 the most that was gained.
    cluster_agreement: float = 0.9
    cluster_separation: float = 3.0

    # Votes: stage 1 counts as half of all maps together; by the power of its share of votes a
    # row without near unanimity hardly counts.
    weight_of_stage_one: float = 0.5
    confidence_power: int = 8
    # Criterion: the standard error of a loss and the disagreement with the first votes count a
    # quarter of the loss; once the votes take part, the loss counts half of the disagreement.
    caution: float = 0.25
    loss_after_votes: float = 0.5
    # A choice made before stays unless another is better by so many standard errors: of labels
    # added one by one each then moves 9 % of the rows by more than their own uncertainty, on three
    # sets, where it moved 26 % (`benchmarks/labelling_refits.py`).
    reluctance: float = 2.0


RULE = Rule()

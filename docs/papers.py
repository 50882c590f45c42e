"""Where each numbered thing of the four papers is, and what shows it: docs/papers.md.

`python docs/papers.py` writes the page. A test asks that every function and every test named here
exists, so that the page cannot grow old. Where a thing is nowhere, the last column has the reason,
in brackets.
"""

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
PAGE = HERE / "papers.md"


class Item(NamedTuple):
    """A thing of a paper: its number or name, what it is, its function, test or result."""

    name: str
    what: str
    where: str
    shown: str


def items(table) -> list[Item]:
    """The lines of a table, one thing each, columns parted by bars."""
    lines = [line for line in table.strip().splitlines() if line.strip()]
    return [Item(*(part.strip() for part in line.split("|"))) for line in lines]


PAPERS = {
    "[YYTKW06], SPPCA and S²PPCA": items("""
Prop. 1 | PPCA: maximum and projection | models.gaussian.ppca.closed_form | tests/models/gaussian/test_ppca.py::test_closed_form_is_a_maximum
model, 3.2-3.3 | x and y share z; rows without y | models.sppca.em.e_step | tests/models/sppca/test_em.py::test_objective_is_the_gaussian_log_density
(1) | z given x and y, by Bayes | models.sppca.predict.posterior | tests/models/sppca/test_predict.py::test_the_posterior_is_the_conditional_of_the_joint_gaussian
(2), (3) | its mean and covariance, the matrix A | models.sppca.em.precisions | tests/estimators/test_sppca.py::test_posterior_and_prediction_are_conditional_gaussians
(4) | z given x alone, sections 3.4.1 and 3.4.2 | models.sppca.fit.from_likelihood | tests/models/sppca/test_fit.py::test_the_result_is_the_conditional_of_the_joint_gaussian
(5), (6) | expected statistics of labelled rows | models.sppca.em.posteriors | tests/models/sppca/test_em.py::test_gradient_equals_differences
(7) | means; with unlabelled rows not the maximum (E-YYTKW06-2) | models.sppca.em.m_step | tests/models/sppca/test_em.py::test_erratum_mean_of_the_labelled_rows_is_not_the_maximum
(8)-(10) | loadings and noise, all rows labelled | models.sppca.em.m_step | tests/models/sppca/test_closed_form.py::test_em_ends_at_theorem_2
Algorithm 1 | EM of SPPCA as printed: `solver="em"`, all rows labelled | models.gaussian.em.em_step | tests/models/sppca/test_fit.py::test_the_em_of_the_paper_never_loses_objective
start, 6.2 | random loadings, noise variances 1e-5 | models.sppca.fit.fit | tests/models/sppca/test_fit.py::test_the_em_of_the_paper_starts_at_standard_normal_loadings_and_small_noise
(11), (12) | expected statistics of unlabelled rows (E-YYTKW06-1) | models.sppca.em.given_inputs | tests/models/sppca/test_em.py::test_erratum_covariance_without_its_noise_lowers_the_likelihood
(13)-(16) | loadings and noise with unlabelled rows | models.sppca.em.m_step | tests/models/sppca/test_em.py::test_no_step_descends
Algorithm 2 | EM of S²PPCA as printed: `solver="em"` | models.gaussian.em.em_step | tests/models/sppca/test_fit.py::test_the_em_of_the_paper_ends_at_the_maximum_with_the_mean_of_the_labelled
Algorithm 3 | EM in the dual form | models.sppca.statistics.from_dual | tests/models/sppca/test_statistics.py::test_a_step_of_the_dual_is_a_step_of_the_primal
(17)-(20) | from the primal to inner products, appendix A | models.sppca.statistics.from_dual | tests/models/sppca/test_statistics.py::test_moments_and_dual_have_one_maximum
(21)-(26) | the dual step: the same step on a factor of the Gram matrix | models.sppca.statistics.from_dual | tests/models/sppca/test_statistics.py::test_a_step_of_the_dual_is_a_step_of_the_primal
(27), (28) | kernels, centring of new rows | models.kernel.fit_features | tests/models/test_kernel.py::test_features_have_the_centred_kernel_as_products
Theorem 2 (i) | closed form, all rows labelled (E-YYTKW06-6) | models.sppca.closed_form.closed_form | tests/models/sppca/test_closed_form.py::test_theorem_2_at_the_noise_of_em_gives_its_loadings
Theorem 2 (ii) | its projection (E-YYTKW06-7) | models.sppca.fit.from_likelihood | tests/models/sppca/test_closed_form.py::test_theorem_2_projects_to_the_posterior_mean
rotation, 5.1 | axes of A (E-YYTKW06-3) | models.sppca.em.canonical | tests/models/sppca/test_em.py::test_erratum_rotation_needs_the_noise_levels
Theorem 3 | closed form in the dual, kernels (E-YYTKW06-8) | models.sppca.closed_form.closed_form | tests/estimators/test_kernel_sppca.py::test_theorem_3_at_the_noise_that_was_learnt
"no local minima" | false where noise is learnt (E-YYTKW06-4) | models.sppca.closed_form.best_ratio | tests/models/sppca/test_closed_form.py::test_erratum_learnt_noise_has_two_maxima_and_the_search_takes_the_better
prior, 5.3 | Gaussian prior on the loadings: `prior=` | models.sppca.em.penalty | tests/models/sppca/test_em.py::test_no_step_descends
noise per output, 3.2 | `noise="per_output"` | models.sppca.statistics.free_levels | tests/models/sppca/test_statistics.py::test_levels_are_mean_squares_of_what_is_learnt_together
probit or logistic likelihood of classes (future work) | `likelihood="probit"`, by expectation propagation | models.sppca.probit.e_step | tests/models/sppca/test_probit.py::test_the_objective_is_the_density_of_rows_and_the_probability_of_classes
missing entries, 3.1 | gaps in x and y | models.sppca.gaps.maximise | tests/models/sppca/test_gaps.py::test_the_objective_is_the_density_of_what_is_observed
mixtures, 3.1 | mixtures of PPCA | | (not built: an M-step is PPCA with the responsibilities as weights, but starts, empty parts, their number, gaps, uncertainty of a map with several charts make another estimator, not a part of SPPCA's equations)
Figure 2 | toy: classes apart along a direction of small variance | models.strength.clusters.cluster_shares | tests/models/strength/test_clusters.py::test_the_direction_that_splits_unlabelled_rows_is_found_from_four_labels
Table 1 | data sets | benchmarks/papers/data.py | benchmarks/results/papers/YYTKW06.json
Tables 2, 3 | error rates and F1 | benchmarks/papers/yytkw06.py | benchmarks/results/papers/YYTKW06.json
Wilcoxon marks, Table 2 | the best method beyond chance | benchmarks/papers/layouts.py | tests/benchmarks/test_papers.py::test_a_star_needs_every_rank_sum_test
one-hot outputs | no maximum (E-YYTKW06-5); contrasts instead | estimators._targets.contrasts | tests/models/sppca/test_closed_form.py::test_erratum_one_hot_outputs_have_no_maximum
"""),
    "[LYZ09], PRPCA": items("""
Theorems 1-3 | properties of the matrix-variate normal law | models.relational.paper.log_density | tests/models/relational/test_paper.py::test_likelihood_is_the_matrix_normal_density
(1)-(5) | PPCA in that form | models.gaussian.ppca.log_likelihood | tests/models/gaussian/test_ppca.py::test_closed_form_reports_its_likelihood
(6), (9)-(11) | the prior of the latent variables and the noise | models.relational.paper.mixing | tests/models/relational/test_paper.py::test_erratum_4_the_prior_makes_linked_rows_negatively_correlated
(7) | retained variance under PPCA's prior | | (a remark that motivates (8); nothing is computed)
(8), 4.1.1 | the precision Delta = gamma I + (alpha I + A)² and footnote 3 (E-LYZ09-1) | models.relational.paper.mixing | tests/models/relational/test_paper.py::test_mixing_is_a_root_of_the_precision
(12), (13) | rows given the latent variables, and all rows | models.relational.paper.log_density | tests/models/relational/test_paper.py::test_likelihood_is_the_matrix_normal_density
(14), (15) | the log likelihood and H | models.relational.paper.log_density | tests/models/relational/test_paper.py::test_likelihood_is_the_matrix_normal_density
(16) | the mean | models.relational.paper.relational_mean | tests/models/relational/test_paper.py::test_mean_is_that_of_highest_likelihood
Theorem 4, (17), (18) | closed form | models.relational.paper.closed_form | tests/models/relational/test_paper.py::test_closed_form_is_theorem_4
(19), (20) | expected statistics; the projection (E-LYZ09-3) | models.relational.fit.fit | tests/estimators/test_prpca.py::test_transform_is_equation_19_scaled_to_an_unlinked_row
(21), (22) | the EM step: `solver="em"` | models.relational.paper.em_method | tests/models/relational/test_paper.py::test_em_step_is_equations_21_and_22
(23)-(26), appendix | how (19) to (22) come about | models.relational.paper.em_method | tests/models/relational/test_paper.py::test_em_ends_at_the_closed_form
Remark 1 | no links and gamma = 0 are PPCA (E-LYZ09-2) | models.relational.paper.closed_form | tests/models/relational/test_paper.py::test_no_links_scale_ppca_by_alpha_and_gamma
4.3 | cost; Delta is not sparse with a hub (E-LYZ09-5) | models.relational.paper.mixing | tests/models/relational/test_paper.py::test_erratum_5_the_precision_is_not_sparse_with_a_hub
co-links, 5.1 | pages that link to or are linked by the same | linalg.graph.colinks | tests/linalg/test_graph.py::test_colinks_follow_the_definition
Tables 1, 2 | data sets | benchmarks/papers/data.py | benchmarks/results/papers/LYZ09.json
start, 5 | principal axes, noise 1e-6 | models.relational.paper.em_method | tests/models/relational/test_paper.py::test_em_starts_at_principal_axes_and_small_noise
footnote 3, Remark 1 | how much alpha and gamma matter | benchmarks/papers/lyz09.py | benchmarks/results/papers/LYZ09.json
Figure 2 | accuracy along the iterations of EM | benchmarks/papers/lyz09.py | benchmarks/results/papers/LYZ09.json
Figure 3 | political books in two dimensions | benchmarks/prpca_figures.py | benchmarks/results/papers/LYZ09.json
Figures 4, 5 | accuracy against PCA and others | benchmarks/papers/lyz09.py | benchmarks/results/papers/LYZ09.json
Table 3 | political books, area under the curve | benchmarks/papers/lyz09.py | benchmarks/results/papers/LYZ09.json
missing values (future work) | gaps in content | models.relational.gaps.fit_with_gaps | tests/models/relational/test_gaps.py::test_the_bound_never_falls
Bayesian PRPCA (future work) | a prior on each loading, the number of components: `prior="ard"` | models.gaussian.bayesian.maximise | tests/models/gaussian/test_bayesian.py::test_the_planted_number_is_found_in_nearly_all_relational_samples
Bayesian PRPCA with missing values | the bound with a factor of the gaps | models.gaussian.bayesian.maximise_with_gaps | tests/models/gaussian/test_bayesian.py::test_with_gaps_the_planted_number_is_found_and_the_bound_never_falls
new nodes, 4.2 | projection of nodes unseen in the fit, all relations | estimators.prpca.PRPCA | benchmarks/results/prpca_nodes.json
another precision, 4.1.1 | `fit(X, delta=...)` | models.relational.paper.root_of | tests/models/relational/test_paper.py::test_the_root_of_a_sparse_precision_squares_to_it
other networks (future work) | any weighted graph | estimators.links.Links | tests/estimators/test_links.py::test_weights_are_used_as_given_and_the_largest_of_a_repeated_pair_counts
"""),
    "[PGK07], DCA-GM and SDCA-GM": items("""
(1) | a mixture of Gaussians for each class | models.dcagm.mixture.log_joint | tests/models/dcagm/test_mixture.py::test_log_joint_is_the_gaussian_log_density
numbers of Gaussians, 2.2 | different for each class | models.dcagm.mixture.m_step | tests/estimators/test_dcagm.py::test_classes_may_have_different_numbers_of_gaussians
a covariance per Gaussian, 2.2 | `covariance="gaussian"` | models.dcagm.mixture.m_step | tests/models/dcagm/test_fit.py::test_each_gaussian_may_have_its_own_covariance
(2) | the objective; without a maximum as printed (E-PGK07-4) | models.dcagm.alternation.objective | tests/models/dcagm/test_alternation.py::test_objective_is_the_sum_of_its_terms_computed_row_by_row
(3) | that a group shares a class (E-PGK07-1) | models.dcagm.rows.chunk_ratio | tests/models/dcagm/test_rows.py::test_ratio_3_is_no_probability_and_grows_without_bound
groups from pairs, 2.1 | transitive closure of must-link pairs | estimators.chunks.chunks_from_pairs | tests/estimators/test_chunks.py::test_pairs_close_transitively
(4), (7) | gradients of labelled rows and groups | models.dcagm.alternation.row_gradient | tests/models/dcagm/test_alternation.py::test_gradient_of_each_term_equals_central_differences
(5), (6) | posteriors of classes and Gaussians | models.dcagm.mixture.class_densities | tests/models/dcagm/test_mixture.py::test_classes_sum_their_gaussians_far_from_all_of_them
(8) | gradient of unlabelled rows (E-PGK07-2) | models.dcagm.rows.row_density | tests/models/dcagm/test_alternation.py::test_printed_equation_8_is_not_the_gradient
(9)-(11) | the E step with labels and groups | models.dcagm.alternation.em_moments | tests/models/dcagm/test_alternation.py::test_em_never_descends_with_chunks
M step, appendix B | weights count a group once (E-PGK07-3) | models.dcagm.mixture.m_step | tests/models/dcagm/test_alternation.py::test_counting_rows_of_chunks_in_the_class_weights_descends
3 | EM, then conjugate gradients | models.dcagm.alternation.step | tests/models/dcagm/test_alternation.py::test_each_accepted_step_of_the_projection_ascends
orthogonality, 2.4 (further work) | the covariance of the coordinates is fixed | models.dcagm.alternation.scaled | tests/models/dcagm/test_alternation.py::test_objective_and_classes_do_not_depend_on_the_coordinates
start, 4 | LDA and RCA, k-means in each class | models.dcagm.start.start | tests/models/dcagm/test_start.py::test_directions_are_those_of_lda
metric, 5 | the average covariance of the classes: `metric="within"` | models.dcagm.fit.reported | tests/estimators/test_dcagm.py::test_metrics_are_what_they_say
posterior classifier, 5 | `predict`, `predict_proba` | models.dcagm.mixture.class_densities | tests/estimators/test_dcagm.py::test_probabilities_sum_to_one_and_agree_with_labels
lambda_2 by cross-validation (future work) | `unlabelled_weight="auto"` | models.dcagm.weights.choose_weights | tests/models/dcagm/test_weights.py::test_the_default_stays_unless_another_value_is_clearly_better
larger data (future work) | linear in the rows; batches | models.dcagm.batches.epoch | tests/models/dcagm/test_batches.py::test_batches_gain_more_than_half_of_what_all_rows_gain
cannot-link pairs (future work) | rows of different classes: `fit(..., cannot_link=...)`, in the objective of the projection; EM takes the rows as unlabelled | models.dcagm.rows.pairs_apart | tests/models/dcagm/test_rows.py::test_pairs_apart_are_the_sum_over_different_classes
as printed | objective, start, EM, conjugate gradients and metric: `objective="paper"` | models.dcagm.fit.solve | tests/models/dcagm/test_fit.py::test_as_printed_the_start_is_lda_and_rca_and_the_end_is_the_last_state
Figure 1 | wine with a fifth of the labels | benchmarks/dcagm_accuracy.py | benchmarks/results/dcagm_accuracy.json
Figure 2 | accuracies on six sets | benchmarks/dcagm_accuracy.py | benchmarks/results/dcagm_accuracy.json
fewer labels, 5 | less than a fifth, and the weight lambda_2 | benchmarks/dcagm_accuracy.py | benchmarks/results/dcagm_accuracy.json
groups in experiments | the paper leaves them out | benchmarks/dcagm_accuracy.py | benchmarks/results/dcagm_accuracy.json
"""),
    "[G13], BSDR": items("""
(1), (2) | the model | models.bsdr.factors.make_model | tests/models/bsdr/test_sweeps.py::test_bound_agrees_with_monte_carlo
(3) | the lower bound | models.bsdr.factors.bound | tests/models/bsdr/test_sweeps.py::test_bound_agrees_with_monte_carlo
(4) | q(Phi) (E-G13-1) | models.bsdr.sweeps.update_projection_precisions | tests/models/bsdr/test_sweeps.py::test_printed_squares_of_means_lower_the_bound
(5) | q(Q) | models.bsdr.sweeps.update_projection | tests/models/bsdr/test_inputs.py::test_covariances_equal_the_dense_inverse
(6) | q(Z) (E-G13-2) | models.bsdr.sweeps.update_latent | tests/models/bsdr/test_sweeps.py::test_no_single_update_lowers_the_bound
(7), (8) | q(lambda), q(Psi) (E-G13-1) | models.bsdr.sweeps.update_weight_precisions | tests/models/bsdr/test_sweeps.py::test_no_single_update_lowers_the_bound
(9) | q(b, W) (E-G13-3) | models.bsdr.sweeps.update_weights | tests/models/bsdr/test_sweeps.py::test_no_single_update_lowers_the_bound
(10) | q(T) (E-G13-4), by quadrature | models.bsdr.probit.class_scores | tests/models/bsdr/test_probit.py::test_sixteen_nodes_err_below_two_in_100000
Algorithm 1 | plain sweeps as printed: `solver="paper"` | models.bsdr.sweeps.printed_step | tests/models/bsdr/test_fit.py::test_the_sweeps_of_the_paper_ascend_and_are_sent_to_the_loop_as_they_are
Algorithm 1, faster | sweeps with a joint step for Q and Z (E-G13-10) | models.bsdr.sweeps.step | tests/models/bsdr/test_sweeps.py::test_sweeps_ascend_with_every_hyperparameter
prediction | scores and probabilities (E-G13-5, E-G13-6) | models.bsdr.predict.probabilities | tests/models/bsdr/test_probit.py::test_probabilities_agree_with_draws
ARD, II-C | columnwise prior | models.bsdr.fit.choose_priors | tests/estimators/test_bsdr.py::test_columnwise_prior_finds_the_dimension
rowwise prior, II-D | selection of features | models.bsdr.fit.choose_priors | tests/estimators/test_bsdr.py::test_rowwise_prior_drops_noise_features
cost, II-D | no inverse of D x D where another route is cheaper | models.bsdr.inputs.read_inputs | tests/models/bsdr/test_inputs.py::test_route_follows_the_shape
Gibbs: Phi, Q | full conditionals, appendix A | models.bsdr.gibbs.draw_projection | tests/models/bsdr/test_gibbs.py::test_projection_is_drawn_with_the_latent_variables_integrated_out
Gibbs: Z | full conditional (E-G13-7) | models.bsdr.gibbs.draw_latent | tests/models/bsdr/test_gibbs.py::test_latent_conditional_is_that_of_the_joint_normal
Gibbs: lambda, Psi, b, W | full conditionals | models.bsdr.gibbs.draw_weights | tests/models/bsdr/test_gibbs.py::test_short_geweke
Gibbs: T | truncated normal draws | models.bsdr.probit.draw_class_scores | tests/models/bsdr/test_probit.py::test_drawn_pairs_follow_the_exact_law
Gibbs: prediction | E-G13-8, E-G13-9 | models.bsdr.predict.from_draws | tests/estimators/test_bsdr.py::test_counting_noise_twice_flattens_probabilities
MNP, III | multinomial probit on all inputs | models.bsdr.multinomial.fit | tests/models/bsdr/test_multinomial.py::test_no_single_update_lowers_the_bound
binary and regression (conclusion) | labels of any number, numbers | models.bsdr.outputs.NumberOutputs | tests/models/bsdr/test_fit.py::test_numbers_have_noise_in_their_own_units
kernels (future work) | `KernelFeatures` before BSDR | models.kernel.fit_features | tests/estimators/test_bsdr.py::test_features_of_a_kernel_separate_rings
Gaussian processes, multiple kernels (future work) | other projections | | (not built: they are other models; features of several kernels side by side go into BSDR by a union of transformers)
Table II | iris and wine | benchmarks/papers/g13.py | benchmarks/results/papers/G13.json
Table III | sample size on Vowel | benchmarks/papers/g13.py | benchmarks/results/papers/G13.json
Table IV | retrieval, on Isolet in place of Flickr | tools.retrieval.retrieval_score | benchmarks/results/papers/G13.json
Figure 8 | pictures that were retrieved | | (the Flickr animals are not to be had)
Figures 2, 3 | Vowel, MultiFeat, USPS: accuracies by MNP and nearest rows | benchmarks/papers/g13.py | benchmarks/results/papers/G13.json
Figures 4, 5 | planes of Vowel and MultiFeat, confusion matrices | benchmarks/papers/pictures.py | benchmarks/results/papers/G13.json
Figure 6 | projection matrices, entrywise and columnwise | benchmarks/papers/g13.py | benchmarks/results/papers/G13.json
Figure 7 | the bound along plain sweeps | benchmarks/papers/g13.py | benchmarks/results/papers/G13.json
"""),
}

HEAD = """# Every equation, and where it is

Each numbered equation, algorithm, theorem, experiment and piece of future work of the four papers,
the function that has it, and the test or result that shows it. Errata are on [their own page](errata.md),
the papers' tables on [that of the reproduction](reproduction/index.md). Written by `docs/papers.py`; a test
keeps every name on it true.
"""


def page() -> str:
    """The page, a table for each paper."""
    parts = [HEAD]
    for paper, things in PAPERS.items():
        rows = [_row(thing) for thing in things]
        table = ["| in the paper | what it is | where | shown by |", "|---|---|---|---|", *rows]
        parts.append(f"## {paper}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def _row(thing):
    shown = thing.shown
    if shown.startswith("tests/"):
        path, _, name = shown.partition("::")
        shown = (
            f"`{name.removeprefix('test_').replace('_', ' ')}` in `{path.removeprefix('tests/')}`"
        )
    elif shown.startswith("benchmarks/"):
        shown = f"`{shown}`"
    where = f"`{thing.where}`" if thing.where else ""
    return f"| {thing.name} | {thing.what} | {where} | {shown} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

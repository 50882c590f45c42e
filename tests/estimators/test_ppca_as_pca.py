"""scikit-learn's own tests of PCA, run against PPCA in the units of PCA (`as_pca`).

Those left out, and why, are in LEFT_OUT; every test of that file is in one of the two lists.
"""

import ast
import inspect

import as_pca
import pytest

theirs = pytest.importorskip("sklearn.decomposition.tests.test_pca")

# Rows without noise have no greatest likelihood, which PPCA says and scikit-learn does not.
pytestmark = pytest.mark.filterwarnings("ignore:n_components == .* explains all variance")
APPLY = (
    "test_pca",
    "test_whitening",
    "test_pca_explained_variance_empirical",
    "test_pca_singular_values_consistency",
    "test_pca_singular_values",
    "test_pca_check_projection",
    "test_pca_check_projection_list",
    "test_pca_inverse",
    "test_infer_dim_by_explained_variance",
    "test_pca_score3",
    "test_pca_sanity_noise_variance",
    "test_pca_score_consistency_solvers",
    "test_pca_deterministic_output",
    "test_pca_dtype_preservation",
    "test_pca_n_components_mostly_explained_variance_ratio",
    "test_feature_names_out",
    "test_variance_correctness",
    "test_pca_sparse_fit_transform",
    "test_sparse_pca_auto_arpack_singular_values_consistency",
)
# With two hundred cases each, of 1000 x 300 entries.
SLOW = ("test_pca_sparse",)
LEFT_OUT = {
    "test_sparse_pca_solver_error": "every route of PPCA takes sparse rows",
    "test_no_empty_slice_warning": "asks for as many components as rows, where no noise is left",
    "test_pca_solver_equivalence": "asks for as many components as the rank and more",
    "test_pca_validation": "the words of scikit-learn's messages",
    "test_n_components_none": "PPCA has no components that are not asked for",
    "test_pca_zero_noise_variance_edge_cases": "PPCA keeps a least noise, so that it has a density",
    "test_pca_score": "asks that whitening changes the density, which is none of the model's",
    "test_pca_svd_solver_auto": "the routes of scikit-learn",
    "test_pca_randomized_svd_n_oversamples": "the routes of scikit-learn",
    "test_n_components_mle": "Minka's choice of the dimension",
    "test_n_components_mle_error": "Minka's choice of the dimension",
    "test_pca_dim": "Minka's choice of the dimension",
    "test_infer_dim_1": "Minka's choice of the dimension",
    "test_infer_dim_2": "Minka's choice of the dimension",
    "test_infer_dim_3": "Minka's choice of the dimension",
    "test_assess_dimension_bad_rank": "Minka's choice of the dimension",
    "test_small_eigenvalues_mle": "Minka's choice of the dimension",
    "test_mle_redundant_data": "Minka's choice of the dimension",
    "test_fit_mle_too_few_samples": "Minka's choice of the dimension",
    "test_mle_simple_case": "Minka's choice of the dimension",
    "test_assess_dimension_rank_one": "Minka's choice of the dimension",
    "test_pca_array_api_compliance": "arrays of other libraries than NumPy",
    "test_pca_mle_array_api_compliance": "arrays of other libraries than NumPy",
    "test_array_api_error_and_warnings_on_unsupported_params": "arrays of other libraries",
}

# As scikit-learn before 1.9 spells two of them.
SPELT = {
    "test_sparse_pca_auto_arpack_singluar_values_consistency": APPLY,
    "test_assess_dimesion_rank_one": LEFT_OUT,
}
for _name in (*APPLY, *(name for name, where in SPELT.items() if where is APPLY)):
    if hasattr(theirs, _name):
        globals()[_name] = getattr(theirs, _name)
for _name in SLOW:
    globals()[_name] = pytest.mark.slow(getattr(theirs, _name))


@pytest.fixture(autouse=True)
def by_ppca(monkeypatch):
    monkeypatch.setattr(theirs, "PCA", as_pca.PCA)


@pytest.fixture
def global_random_seed():
    """scikit-learn's own fixture, which its wheel leaves out."""
    return 0


def test_every_test_of_pca_is_run_or_left_out_for_a_reason():
    tree = ast.parse(inspect.getsource(theirs))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    known = {*APPLY, *SLOW, *LEFT_OUT, *SPELT}
    assert {name for name in names if name.startswith("test_")} <= known

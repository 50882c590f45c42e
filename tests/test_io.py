"""Models on AnnData, with the real package: `make test-anndata` runs these where it installs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

anndata = pytest.importorskip("anndata")
pd = pytest.importorskip("pandas")

from gnomon import DCAGM, PPCA, SPPCA, Links
from gnomon.datasets import make_classes
from gnomon.io import fit_anndata, place_anndata

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def cells():
    sample = make_classes(120, 12, n_classes=3, labelled_per_class=15, random_state=0)
    names = np.array(["B cell", "T cell", "monocyte"], dtype=object)
    data = anndata.AnnData(sample.X.astype(np.float32))
    data.var_names = [f"gene {i}" for i in range(12)]
    data.obs["truth"] = pd.Categorical(names[sample.y])
    data.obs["kind"] = pd.Categorical(np.where(sample.labels < 0, "Unknown", names[sample.y]))
    data.obs["age"] = sample.X @ sample.directions[:, 0]
    data.layers["double"] = 2 * data.X
    return data


def test_coordinates_loadings_and_facts_are_where_scanpy_looks(cells):
    model = fit_anndata(cells, PPCA(3))
    assert_allclose(cells.obsm["X_ppca"], model.transform(cells.X))
    assert_allclose(cells.varm["ppca_loadings"], model.components_.T)
    assert cells.uns["ppca"]["params"]["n_components"] == "3"
    assert_allclose(cells.uns["ppca"]["variance"], cells.obsm["X_ppca"].var(axis=0))


def test_labels_come_from_obs_and_predictions_go_there(cells):
    cells.uns["kind_colors"] = ["#111111", "#222222", "#333333", "#444444"]
    fit_anndata(cells, SPPCA(2), labels="kind", unlabelled=["Unknown"])
    assert list(cells.obs["sppca_predicted"].cat.categories) == ["B cell", "T cell", "monocyte"]
    assert np.mean(cells.obs["sppca_predicted"].astype(str) == cells.obs["truth"]) > 0.8
    assert cells.obs["sppca_probability"].between(1 / 3, 1).all()
    assert cells.uns["sppca_predicted_colors"] == ["#111111", "#222222", "#444444"]


def test_missing_labels_are_unlabelled(cells):
    cells.obs["partly"] = cells.obs["kind"].cat.remove_categories("Unknown")
    model = fit_anndata(cells, DCAGM(2), labels="partly", key="map")
    assert list(model.classes_) == ["B cell", "T cell", "monocyte"]
    assert "X_map" in cells.obsm and "map_predicted" in cells.obs


def test_numbers_have_their_deviations(cells):
    cells.obs.loc[cells.obs_names[40:], "age"] = np.nan
    fit_anndata(cells, SPPCA(2), labels="age")
    assert cells.obs["sppca_sd"].gt(0).all()


def test_a_layer_takes_the_place_of_x(cells):
    fit_anndata(cells, PPCA(2))
    fit_anndata(cells, PPCA(2), layer="double", key="twice")
    gram = cells.obsm["X_ppca"] @ cells.obsm["X_ppca"].T
    assert_allclose(cells.obsm["X_twice"] @ cells.obsm["X_twice"].T, gram, rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match=r"layer == 'none'; data.layers has double"):
        fit_anndata(cells, PPCA(2), layer="none")


def test_highly_variable_genes_are_used_where_they_are_marked(cells):
    cells.var["highly_variable"] = np.arange(12) < 8
    model = fit_anndata(cells, PPCA(2))
    assert model.n_features_in_ == 8
    assert_array_equal(cells.varm["ppca_loadings"][8:], 0)
    fit_anndata(cells, PPCA(2), genes=["gene 3", "gene 1", "gene 2"], key="three")
    assert list(cells.uns["three"]["genes"]) == ["gene 3", "gene 1", "gene 2"]
    with pytest.raises(ValueError, match=r"1 names that data.var_names lacks: gene 99"):
        fit_anndata(cells, PPCA(2), genes=["gene 1", "gene 99"])


def test_sparse_cells_stay_sparse_and_give_the_same(cells):
    dense = fit_anndata(cells, PPCA(2))
    cells.X = sparse.csr_matrix(cells.X)
    thin = fit_anndata(cells, PPCA(2))
    assert_allclose(thin.get_covariance(), dense.get_covariance(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_backed_file_is_read_in_blocks(cells, kind, tmp_path, monkeypatch):
    whole = fit_anndata(cells.copy(), PPCA(2))
    monkeypatch.setattr("gnomon.io.CELLS_AT_ONCE", 50)
    cells.X = kind(cells.X)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    model = fit_anndata(backed, PPCA(2))
    assert_allclose(model.get_covariance(), whole.get_covariance(), rtol=1e-4, atol=1e-4)
    assert backed.obsm["X_ppca"].shape == (120, 2)


# Beyond the other side, before it, an end beyond the entries, an end before its start.
UNSOUND = {"indices": (10**6, -1), "indptr": (10**6, -1)}


@pytest.mark.parametrize("backed", [None, "r"])
@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix])
@pytest.mark.parametrize("part, value", [(p, v) for p, vs in UNSOUND.items() for v in vs])
def test_a_file_with_indices_beyond_its_matrix_is_refused(
    cells, part, value, form, backed, tmp_path
):
    h5py = pytest.importorskip("h5py")
    cells.X = form(cells.X)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    with h5py.File(tmp_path / "cells.h5ad", "a") as file:
        file[f"X/{part}"][5] = value
    with pytest.raises((ValueError, IndexError)):
        fit_anndata(anndata.read_h5ad(tmp_path / "cells.h5ad", backed=backed), PPCA(2))


@pytest.mark.parametrize("where", ["X", "layers", "obsp"])
def test_indices_beyond_a_matrix_in_memory_are_refused(cells, where):
    matrix = sparse.csr_matrix(np.eye(120, 120 if where == "obsp" else 12, dtype=np.float32))
    if where == "X":
        cells.X = matrix
    else:
        getattr(cells, where)["wrong"] = matrix
    known = {"layers": {"layer": "wrong"}, "obsp": {"links": "wrong"}}.get(where, {})
    fit_anndata(cells, SPPCA(2), labels="kind", unlabelled=["Unknown"], **known)
    matrix.indices[3] = 10**6
    with pytest.raises(ValueError, match="not sound"):
        fit_anndata(cells, SPPCA(2), labels="kind", unlabelled=["Unknown"], **known)


def test_links_come_from_obsp(cells):
    edges = Links.from_edges([(i, i + 1) for i in range(119)])
    cells.obsp["connectivities"] = sparse.csr_matrix(edges.adjacency)
    model = fit_anndata(
        cells, SPPCA(2), labels="kind", unlabelled=["Unknown"], links="connectivities"
    )
    assert model.links_used_ in (True, False)
    assert cells.obsm["X_sppca"].shape == (120, 2)


def test_other_cells_are_placed_by_the_names_of_their_genes(cells):
    model = fit_anndata(cells, SPPCA(2), labels="truth")
    others = cells[:30, ::-1].copy()
    del others.obsm["X_sppca"]
    place_anndata(others, model, genes=cells.uns["sppca"]["genes"])
    assert_allclose(others.obsm["X_sppca"], cells.obsm["X_sppca"][:30], rtol=1e-5, atol=1e-5)
    assert (others.obs["sppca_predicted"] == cells.obs["sppca_predicted"][:30]).all()


def test_a_file_holds_all_of_it(cells, tmp_path):
    fit_anndata(cells, SPPCA(2), labels="kind", unlabelled=["Unknown"])
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_allclose(again.obsm["X_sppca"], cells.obsm["X_sppca"])
    assert list(again.uns["sppca"]["genes"]) == list(cells.var_names)


def test_scanpy_takes_the_coordinates(cells):
    scanpy = pytest.importorskip("scanpy")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    fit_anndata(cells, SPPCA(2), labels="kind", unlabelled=["Unknown"])
    scanpy.pp.neighbors(cells, use_rep="X_sppca", n_neighbors=5)
    assert cells.obsp["connectivities"].shape == (120, 120)
    scanpy.pl.embedding(cells, basis="sppca", color="sppca_predicted", show=False)
    plt.close("all")

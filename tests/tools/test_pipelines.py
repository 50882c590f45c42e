"""scikit-learn's preprocessing in model files: equal answers, or refused; never code."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import gnomon
from gnomon.exceptions import ModelFileError
from gnomon.tools import modelfile, pipelines
from gnomon.tools.encoding import Decoder, Encoder

pytest.importorskip("safetensors")
pd = pytest.importorskip("pandas")

KINDS = np.array(["a", "b", "c", None], dtype=object)
TEXTS = ["a cat sat", "a dog sat here", "no cat no dog", "here it is", "a bird sang"] * 6


@pytest.fixture
def sample(rng):
    X = rng.normal(size=(30, 4)) + 2
    return X, np.array(["x", "y"])[(X[:, 0] > 2).astype(int)]


@pytest.fixture
def frame(sample):
    X, _ = sample
    frame = pd.DataFrame(X, columns=["u", "v", "w", "t"])
    frame.loc[3, "u"] = np.nan
    return frame.assign(
        k=KINDS[np.arange(30) % 3], size=[["s", "m", "l"][i % 3] for i in range(30)]
    )


def there_and_back(model, tmp_path):
    return gnomon.load(gnomon.save(model, tmp_path / "model.gnomon"))


def dense(Z):
    return Z.toarray() if sparse.issparse(Z) else np.asarray(Z)


def check(model, X, tmp_path):
    """The same answers from a file, the same bytes from what it gave."""
    back = there_and_back(model, tmp_path)
    assert type(back) is type(model)
    for name in ("transform", "predict", "predict_proba"):
        if hasattr(model, name):
            assert_array_equal(dense(getattr(back, name)(X)), dense(getattr(model, name)(X)))
    first = (tmp_path / "model.gnomon").read_bytes()
    assert gnomon.save(back, tmp_path / "again").read_bytes() == first
    return back


OF_NUMBERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler((-1, 1), clip=True),
    RobustScaler(quantile_range=(10, 90)),
    MaxAbsScaler(),
    Normalizer("l1"),
    PowerTransformer(),
    PowerTransformer("box-cox", standardize=False),
    SimpleImputer(strategy="median", add_indicator=True),
    VarianceThreshold(0.01),
    PCA(2, whiten=True, random_state=0),
    TruncatedSVD(2, random_state=0),
]


@pytest.mark.parametrize("step", OF_NUMBERS, ids=repr)
def test_a_step_before_a_model_comes_back(step, sample, tmp_path):
    X, y = sample
    X = np.abs(X) + 0.1
    model = make_pipeline(clone(step), gnomon.SPPCA(1, supervision=0.5)).fit(X, y)
    check(model, X, tmp_path)
    check(clone(step).fit(X), X, tmp_path)


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first", sparse_output=False, dtype=np.float32),
        OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
        OneHotEncoder(min_frequency=9, handle_unknown="infrequent_if_exist", drop="first"),
        OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist"),
        OneHotEncoder(categories=[["a", "b", "c", None], [0, 1, 2]]),
        OrdinalEncoder(),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, min_frequency=9),
        OrdinalEncoder(encoded_missing_value=-2, dtype=int),
    ],
    ids=repr,
)
def test_encoders_of_categories_come_back(encoder, tmp_path):
    X = np.empty((30, 2), dtype=object)
    X[:, 0], X[:, 1] = KINDS[np.arange(30) % 7 % 4], np.arange(30) % 3
    check(encoder.fit(X), X, tmp_path)


@pytest.mark.parametrize(
    "vectorizer",
    [
        CountVectorizer(),
        CountVectorizer(max_features=4, stop_words="english"),
        CountVectorizer(vocabulary=["cat", "dog"]),
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", max_df=0.9, use_idf=False),
        make_pipeline(CountVectorizer(), TfidfTransformer()),
    ],
    ids=repr,
)
def test_texts_come_back(vectorizer, tmp_path):
    y = np.arange(30) % 5 > 1
    model = make_pipeline(vectorizer, TruncatedSVD(2, random_state=0), gnomon.DCAGM(1))
    check(model.fit(TEXTS, y), TEXTS, tmp_path)


def columns_of(numbers, kinds, **options):
    steps = [("numbers", StandardScaler(), numbers), ("kinds", OneHotEncoder(), kinds)]
    return ColumnTransformer([*steps, ("as it is", "passthrough", [2])], **options)


@pytest.mark.parametrize(
    "columns",
    [
        columns_of(["u", "v"], ["k", "size"]),
        columns_of(slice(0, 2), [4]),
        columns_of(slice("u", "v"), slice(4, 6), n_jobs=1),
        columns_of([True, True, False, False, False, False], ["k"], sparse_threshold=0),
        columns_of(np.array([0, 1]), ["k"], remainder="drop", transformer_weights={"kinds": 2.0}),
        ColumnTransformer([("k", OrdinalEncoder(), ["k", "size"])], remainder=StandardScaler()),
        ColumnTransformer([("k", OrdinalEncoder(), ["k", "size"])], remainder="passthrough"),
        columns_of(["u"], ["k"]).set_output(transform="default"),
    ],
    ids=range(8),
)
def test_columns_come_back(columns, frame, sample, tmp_path):
    model = make_pipeline(columns, SimpleImputer(), gnomon.SPPCA(1, supervision=0.5))
    back = check(model.fit(frame, sample[1]), frame, tmp_path)
    assert back[0].n_jobs is None
    assert_array_equal(back[0].get_feature_names_out(), columns.get_feature_names_out())


def test_frames_come_out_of_what_came_back(frame, tmp_path):
    numbers = Pipeline([("gaps", SimpleImputer()), ("scale", StandardScaler())])
    columns = ColumnTransformer([("n", numbers, ["u", "v"])]).set_output(transform="pandas")
    back = there_and_back(columns.fit(frame), tmp_path)
    pd.testing.assert_frame_equal(back.transform(frame), columns.transform(frame))


def test_a_union_comes_back(sample, tmp_path):
    X, _ = sample
    parts = [("scaled", StandardScaler()), ("pca", PCA(2)), ("none", "drop")]
    union = FeatureUnion(parts, transformer_weights={"pca": 3.0})
    check(make_pipeline(union, gnomon.PPCA(1)).fit(X), X, tmp_path)


def test_what_came_back_can_be_fitted_again(frame, sample, tmp_path):
    model = make_pipeline(columns_of(["v", "w"], ["k"]), gnomon.SPPCA(1, supervision=0.5))
    back = there_and_back(model.fit(frame, sample[1]), tmp_path)
    expected = model.transform(frame)
    assert_array_equal(back.fit(frame, sample[1]).transform(frame), expected)


def double(X):
    return 2 * X


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (KMeans(2), "_kmeans.KMeans is neither a model of gnomon nor one of scikit-learn's"),
        (KNNImputer(), "_knn.KNNImputer is neither"),
        (SelectKBest(k=2), "SelectKBest is neither"),
        (FunctionTransformer(double), "func is <function double"),
        (SimpleImputer(strategy=np.mean), "strategy is <"),
        (type("StandardScaler", (StandardScaler,), {})(), "not the StandardScaler that files hold"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_on_the_list_is_refused_with_the_way_out(step, said, sample, tmp_path):
    model = make_pipeline(step, gnomon.PPCA(1))
    with pytest.raises(ModelFileError) as error:
        gnomon.save(model, tmp_path / "model.gnomon")
    assert said in str(error.value)
    assert "not the" in said or "joblib at your own risk" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_columns_by_a_function_and_a_memory_are_refused(frame, tmp_path):
    chosen = ColumnTransformer([("n", StandardScaler(), make_column_selector("u|v"))])
    with pytest.raises(
        ModelFileError, match=r"transformers is .* which a model file does not hold"
    ):
        gnomon.save(chosen.fit(frame), tmp_path / "model.gnomon")
    with pytest.raises(ModelFileError, match=r"Pipeline\.memory is 'cache'"):
        gnomon.save(Pipeline([("s", StandardScaler())], memory="cache"), tmp_path / "m")


def test_an_attribute_that_is_not_known_is_refused(sample, tmp_path):
    scaler = StandardScaler().fit(sample[0])
    scaler.extra_ = 1
    with pytest.raises(ModelFileError, match="has 'extra_', which is no fitted attribute of Stand"):
        gnomon.save(scaler, tmp_path / "m")


def test_every_class_on_the_list_is_where_it_is_said_to_be():
    for name in pipelines.ALLOWED:
        assert pipelines.find_class(name).__name__ == name


def test_another_version_of_scikit_learn_is_warned_of(sample, tmp_path, monkeypatch):
    path = tmp_path / "m.gnomon"
    with monkeypatch.context() as patch:
        patch.setattr(modelfile.sklearn, "__version__", "1.0.2")
        gnomon.save(make_pipeline(StandardScaler(), gnomon.PPCA(1)).fit(sample[0]), path)
        gnomon.save(gnomon.PPCA(1).fit(sample[0]), tmp_path / "alone.gnomon")
    with pytest.warns(UserWarning, match=r"of scikit-learn 1\.0\.2, this is") as caught:
        gnomon.load(path)
    assert caught[0].filename == __file__
    gnomon.load(tmp_path / "alone.gnomon")


# What somebody could write who means harm.


def tree(model):
    encoder = Encoder()
    return encoder.encode(model, "model"), encoder.arrays


def refused(node, arrays):
    with pytest.raises((ModelFileError, ValueError, TypeError, KeyError, RecursionError)):
        Decoder(arrays).decode(node)


SCALER = {
    "n_features_in_": [-1, "4", None, 10**30, 5, {"float": "nan"}],
    "mean_": ["text", 1, [1, 2], {"strings": ["a", "b", "c", "d"], "shape": [4]}, {"array": "big"}],
    "scale_": [{"objects": [None] * 4, "shape": [4]}, {"tuple": []}, {"dict": []}],
    "n_samples_seen_": ["many", {"dict": []}, {"objects": [None], "shape": [1]}],
    "feature_names_in_": [
        {"strings": ["a"], "shape": [1]},
        {"objects": [1, 2, 3, 4], "shape": [4]},
    ],
    "_sklearn_output_config": [{"dict": [["transform", "os.system"]]}, "pandas", {"dict": []}],
    "__class__": [1],
    "__dict__": [{"dict": []}],
    "__setstate__": [1],
    "transform": [1],
    "fit": [None],
    "components_": [{"array": "big"}],
    "_validate_params": [True],
}


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, vs in SCALER.items() for v in vs])
def test_forged_attributes_are_refused(name, value, sample):
    node, arrays = tree(StandardScaler().fit(sample[0]))
    Decoder(arrays).decode(node)
    node["attributes"][name] = value
    refused(node, arrays | {"big": np.ones(1000)})


PARAMETERS = [
    (StandardScaler(), "command", "id"),
    (StandardScaler(), "with_mean", "yes"),
    (StandardScaler(), "__init__", None),
    (CountVectorizer(), "tokenizer", "os.system"),
    (CountVectorizer(), "preprocessor", "builtins.eval"),
    (CountVectorizer(), "analyzer", "os.system"),
    (CountVectorizer(), "input", "filename"),
    (CountVectorizer(), "dtype", {"type": "system"}),
    (CountVectorizer(), "dtype", {"dtype": "V8"}),
    (CountVectorizer(), "dtype", {"dtype": ["O"]}),
    (FunctionTransformer(), "func", "os.system"),
    (FunctionTransformer(), "func", {"estimator": "os.system", "params": {}, "attributes": {}}),
    (FunctionTransformer(), "kw_args", {"dict": [["a", 1]]}),
    (OneHotEncoder(), "feature_name_combiner", "os.system"),
    (PCA(), "random_state", "generator"),
    (Pipeline([("s", "passthrough")]), "memory", "/tmp/cache"),
    (Pipeline([("s", "passthrough")]), "steps", [{"tuple": ["s", "os.system"]}]),
    (Pipeline([("s", "passthrough")]), "steps", "passthrough"),
    (Pipeline([("s", "passthrough")]), "steps", [["s", "passthrough"]]),
    (ColumnTransformer([]), "n_jobs", 10**6),
    (ColumnTransformer([]), "remainder", "os.system"),
    (ColumnTransformer([]), "transformers", [{"tuple": ["n", "drop", {"dict": []}]}]),
    (ColumnTransformer([]), "transformers", [{"tuple": ["n", "drop", {"slice": [[], None, 1]}]}]),
]


@pytest.mark.parametrize(("model", "name", "value"), PARAMETERS, ids=repr)
def test_forged_parameters_are_refused(model, name, value):
    node, arrays = tree(model)
    Decoder(arrays).decode(node)
    node["params"][name] = value
    refused(node, arrays)


@pytest.mark.parametrize("name", ["KMeans", "sklearn.cluster.KMeans", "os.system", "Popen", "eval"])
def test_classes_that_are_not_on_the_list_are_not_looked_for(name):
    node = {"estimator": name, "params": {}, "attributes": {}}
    with pytest.raises(ModelFileError, match=r"neither a model of gnomon .*joblib"):
        Decoder({}).decode(node)


WORDS = [
    {"dict": [["cat", 0], ["dog", 10**9]]},
    {"dict": [["cat", 0], ["dog", -1]]},
    {"dict": [["cat", 0], ["dog", 0]]},
    {"dict": [["cat", True], ["dog", 0]]},
    {"dict": [[0, 0], [1, 1]]},
    ["cat", "dog"],
]


@pytest.mark.parametrize("words", WORDS, ids=repr)
def test_words_with_columns_that_are_not_there_are_refused(words):
    """SciPy's loops trust the numbers of columns: a wrong one would read memory beyond the rows."""
    node, arrays = tree(CountVectorizer().fit(["cat dog"]))
    node["attributes"]["vocabulary_"] = words
    refused(node, arrays)


LEVELS = [
    ("_n_features_outs", [2, 3]),
    ("_n_features_outs", [1]),
    ("_n_features_outs", [10**12, 3]),
    ("_n_features_outs", [-1, 3]),
    ("_n_features_outs", [True, 2]),
    ("_drop_idx_after_grouping", {"objects": [7, 0], "shape": [2]}),
    ("_drop_idx_after_grouping", {"objects": [-1, 0], "shape": [2]}),
    ("_drop_idx_after_grouping", None),
    ("_infrequent_enabled", True),
    ("_default_to_infrequent_mappings", [None]),
    ("categories_", []),
    ("categories_", [{"strings": ["a"], "shape": [1]}] * 2),
    ("categories_", [{"strings": ["a", "b"], "shape": [2, 1]}] * 2),
]


@pytest.mark.parametrize(("name", "value"), LEVELS, ids=repr)
def test_encoders_with_indicators_that_are_not_there_are_refused(name, value):
    node, arrays = tree(OneHotEncoder(drop="first").fit([["a", "x"], ["b", "y"], ["b", "z"]]))
    Decoder(arrays).decode(node)
    node["attributes"][name] = value
    if name == "_infrequent_enabled":
        far = {"array": "far"}
        node["attributes"]["_default_to_infrequent_mappings"] = [far, far]
        arrays |= {"far": np.array([0, 10**9])}
    refused(node, arrays)


def test_a_tower_of_pipelines_is_refused(tmp_path):
    node: dict = tree(Pipeline([("s", "passthrough")]))[0]
    for _ in range(2000):
        step = {"tuple": ["s", node]}
        node = {"estimator": "Pipeline", "params": {"steps": [step]}, "attributes": {}}
    refused(node, {})


def test_nothing_is_warned_of_while_saving(sample, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there_and_back(make_pipeline(StandardScaler(), gnomon.PPCA(1)).fit(sample[0]), tmp_path)

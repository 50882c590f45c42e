import base64
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
import gnomon.tools.report.page as page_module
from gnomon import SPPCA
from gnomon.displays.style import ON_DARK, PALETTE, PLAIN_COLOURS
from gnomon.tools.report import sections
from gnomon.tools.report.page import (
    Subject,
    payload,
    python_code,
    render,
    write_report,
)


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def inside(self, tag):
        return [text for place, text in self.texts if place == tag]


@pytest.fixture(scope="module")
def subject(make_subject):
    return make_subject()


@pytest.fixture(scope="module")
def page(subject):
    return render(subject, command="gnomon fit t.parquet", notes=["a note"])


def test_the_page_has_every_section(page):
    for section in ("embedding", "score", "labels", "next", "loadings", "gaps", "data", "again"):
        assert f'id="{section}"' in page


def test_the_policy_allows_this_script_and_style_and_nothing_else(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[-1]
    for text, kind in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} &#39;sha256-{digest}" in policy or f"{kind} 'sha256-{digest}" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_page_names_no_remote_host(page):
    hosts = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert hosts <= {"http://www.w3.org/2000/svg"}


def test_no_element_has_a_style_or_an_event_attribute(page):
    for _, attributes in Page(page).tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]


def test_the_packed_numbers_are_those_of_the_model(subject):
    data = payload(subject)
    z = np.frombuffer(base64.b64decode(data["z"][0]), "<f4")
    assert_allclose(z, subject.model.transform(subject.X)[:, 0], rtol=1e-5)
    packed = np.frombuffer(base64.b64decode(data["covariance"]["values"]), "<f4").reshape(-1, 3)
    assert_allclose(packed[:, 0], subject.covariance[:, 0, 0], rtol=1e-5)
    assert_allclose(packed[:, 1], subject.covariance[:, 0, 1], rtol=1e-5, atol=1e-8)
    assert data["ids"][3] == "row 3"
    names = [column["name"] for column in data["columns"]]
    assert names[0] == "kind"
    assert {"u", "v", "w", "site", "uncertainty"} <= set(names)


def test_covariances_follow_the_scale_of_the_coordinates(subject):
    posterior = subject.model.posterior(subject.X)
    assert_allclose(subject.Z, posterior.mean, rtol=1e-8, atol=1e-10)
    assert_allclose(subject.covariance, posterior.covariance, rtol=1e-10)


def test_unlabelled_rows_are_coloured_by_their_prediction(subject):
    column = payload(subject)["columns"][0]
    codes = np.frombuffer(base64.b64decode(column["values"]), "<u2")
    shown = np.array(column["levels"])[codes]
    expected = np.where(subject.labelled, subject.ready.y, subject.model.predict(subject.X))
    assert shown.tolist() == expected.tolist()


def test_the_rows_to_label_next_are_those_of_the_rule(subject, page):
    first = sections.next_labels(subject).rows[0].name
    table = page[page.index('id="next"') :]
    assert re.search(r'<td class="name">([^<]+)', table).group(1) == first


def test_the_code_in_the_report_makes_the_same_embedding(subject):
    names: dict = {}
    assert "gnomon.tools" not in python_code(subject)
    exec(python_code(subject), names)
    assert_allclose(names["Z"], subject.Z)


def test_a_layout_is_packed_with_its_own_covariances(make_subject):
    subject = make_subject(laid_out=True)
    found = payload(subject)["layout"]
    places = [np.frombuffer(base64.b64decode(text), "<f4") for text in found["places"]]
    assert_allclose(np.transpose(places), subject.layout.transform(subject.Z), rtol=1e-5)
    spread = np.frombuffer(base64.b64decode(found["covariance"]), "<f4").reshape(-1, 3)
    expected = subject.layout.covariance(subject.Z, subject.covariance)
    assert_allclose(spread[:, 0], expected[:, 0, 0], rtol=1e-5)
    assert_allclose(spread[:, 1], expected[:, 0, 1], rtol=1e-4, atol=1e-5)
    assert "rows near each other in all 2 dimensions are near" in render(subject)


def test_the_code_in_the_report_makes_the_same_layout(make_subject):
    subject, names = make_subject(laid_out=True), {}
    exec(python_code(subject), names)
    assert_allclose(names["P"], subject.layout.transform(subject.Z), atol=1e-3)


def test_hostile_names_are_text_and_nothing_else(hostile_subject, hostile):
    page = Page(render(hostile_subject, notes=hostile, command=hostile[0]))
    tags = {tag for tag, _ in page.tags}
    assert "img" not in tags
    scripts = page.inside("script")
    assert len(scripts) == 2
    shown = " ".join(text for _, text in page.texts)
    for name in hostile[:3]:
        assert name in shown


def test_a_report_is_written_whole(subject, tmp_path):
    path = write_report(tmp_path / "r.html", subject)
    assert path.read_text(encoding="utf-8").endswith("</html>")
    assert list(tmp_path.iterdir()) == [path]


def test_many_rows_make_a_page_of_bounded_size(make_subject):
    subject = make_subject(n=20_000)
    assert len(render(subject)) < 12e6


def test_every_target_has_a_colour_of_its_own(make_subject):
    subject = make_subject()
    u, v = np.nan_to_num(subject.ready.X[:, :2].T)
    y = np.column_stack([u, v])
    y[:5, 1] = np.nan
    model = SPPCA(n_components=2, supervision=0.5).fit(subject.ready.X, y)
    ready = subject.ready._replace(y=y, kind="numeric")
    asked = subject.asked._replace(target=("kind", "site"))
    several = Subject(model, subject.table, ready, asked, subject.X)
    columns = payload(several)["columns"]
    names = [column["name"] for column in columns]
    assert names.count("kind") == names.count("site") == 1
    values = columns[names.index("site")]["values"]
    drawn = np.frombuffer(base64.b64decode(values), "<f4")
    assert_allclose(drawn[5:], v[5:], rtol=1e-6)
    assert_allclose(drawn[:5], model.predict(subject.X)[:5, 1], rtol=1e-5)
    page = render(several)
    assert "<title>t: kind, site" in page
    assert "targets &#39;kind&#39;, &#39;site&#39;" in page


def test_the_picture_has_the_colours_of_the_displays(subject):
    found = payload(subject)["palette"]
    assert (found["light"], found["dark"], found["plain"]) == (PALETTE, ON_DARK, PLAIN_COLOURS)


def test_predictions_and_dates_are_columns_of_their_kind(subject):
    data = payload(subject)
    kinds = {column["name"]: column["kind"] for column in data["columns"]}
    assert kinds["kind"] == kinds["kind, predicted"] == kinds["site"] == "classes"
    assert kinds["u"] == kinds["probability of the class"] == "number"
    day = next(column for column in data["columns"] if column["name"] == "day")
    assert day["kind"] == "date"
    days = np.frombuffer(base64.b64decode(day["values"]), "<f8")
    assert days[0] == np.datetime64("2024-02-28").astype(int)
    shown, predicted = data["columns"][:2]
    assert shown["levels"] == predicted["levels"]
    codes = np.frombuffer(base64.b64decode(predicted["values"]), "<u2")
    assert np.array(predicted["levels"])[codes].tolist() == subject.predicted.tolist()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["10", "9", "-2", "1.5"], ["-2", "1.5", "9", "10"]),
        (["site 10", "site 9", "b", "ab"], ["ab", "b", "site 9", "site 10"]),
    ],
)
def test_numbers_in_levels_are_sorted_as_numbers(make_subject, names, expected):
    subject = make_subject(n=40, classes=names, labelled=1.0)
    assert payload(subject)["columns"][0]["levels"] == expected


def test_columns_without_room_are_counted(subject, monkeypatch):
    monkeypatch.setattr(page_module, "COLUMN_BYTES", 0)
    data = payload(subject)
    assert len(data["columns"]) == data["own"]
    assert data["columns_left_out"] == 5


@pytest.mark.parametrize(("labelled", "kept"), [(0.1, True), (0.9, False)])
def test_a_sample_keeps_the_rows_with_a_label_unless_they_are_many(
    make_subject, monkeypatch, labelled, kept
):
    whole = make_subject(n=200, labelled=labelled)
    monkeypatch.setattr(page_module, "MOST_POINTS", 60)
    notes: list = []
    parts = (whole.model, whole.table, whole.ready, whole.asked, whole.X)
    drawn = page_module.Subject.of(*parts, note=notes.append)
    assert len(drawn.Z) == len(set(drawn.rows)) == 60
    assert drawn.ready.ids.tolist() == [f"row {i}" for i in drawn.rows]
    assert (drawn.labelled.sum() == whole.labelled.sum()) == kept
    assert ("all with a label" in notes[0]) == kept
    assert payload(drawn)["n"] == 60

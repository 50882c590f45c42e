"""The labelling page in a real browser: a session by keys, lasso and groups, killed and gone on."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("selenium.webdriver")
pytest.importorskip("pyarrow")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from gnomon.tools.label.rows import from_arrays
from gnomon.tools.label.run import LabellingPage, open_session

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
CLASSES = ("ant", "bee", "cow")


def until(found, seconds=60):
    """The first result that is not false, waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = found()
        if result:
            return result
        time.sleep(0.03)
    raise AssertionError("it did not happen")


@pytest.fixture
def show(browser, screen):
    """Open an address, as wide and as light as asked."""

    def open_page(url, *, width=1300, height=950, scheme="light"):
        screen(width=width, height=height, scheme=scheme)
        browser.get(url)
        until(lambda: shown_row(browser) is not None)
        return browser

    yield open_page
    first, *others = browser.window_handles
    for other in others:
        browser.switch_to.window(other)
        browser.close()
    browser.switch_to.window(first)
    browser.get("about:blank")


@pytest.fixture
def begin(write_table, open_rows, tmp_path):
    """A page of a small table in this process; the truth of its rows."""
    opened = []

    def page(shown=None, **table):
        path, truth = write_table(tmp_path, **table)
        session = open_session(open_rows(path, **(shown or {})), tmp_path / "out")
        opened.append(LabellingPage(session, open_browser=False))
        return opened[-1], truth

    yield page
    for one in opened:
        one.close()


def errors(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def dataset(browser, identity, name):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).dataset[arguments[1]]", identity, name
    )


def shown_row(browser):
    """The row on the card, None while it is not all there."""
    row = dataset(browser, "card", "row")
    return int(row) if row and row == dataset(browser, "card", "shown") else None


def text_of(browser, identity):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).textContent", identity
    )


def press(browser, key):
    ActionChains(browser).send_keys(key).perform()


def labels_of(page):
    record = page._session.record
    return [None if code < 0 else record.classes[code] for code in record.labels]


def give(browser, truth, names=CLASSES):
    """Give the row on the card its true class by its key; the row."""
    row = until(lambda: shown_row(browser) is not None and (shown_row(browser),))[0]
    press(browser, str(names.index(truth[row]) + 1))
    until(lambda: dataset(browser, "card", "row") != str(row))
    return row


def show_only(browser, name):
    """Hide the rows of all other classes, by the legend."""
    hide = "[...document.querySelectorAll('#legend button')].find((b) => b.title === arguments[0])"
    for other in set(CLASSES) - {name}:
        browser.execute_script(f"{hide}.click()", other)
    hidden = 'return document.querySelectorAll("#legend [aria-pressed=false]").length'
    assert browser.execute_script(hidden) == 2


def lasso(browser):
    """Draw round everything with the lasso."""
    browser.execute_script("document.getElementById('embedding').scrollIntoView()")
    press(browser, "l")
    canvas = browser.find_element(By.ID, "canvas")
    width, height = canvas.size["width"], canvas.size["height"]
    corners = [(0.45, -0.45), (0.45, 0.42), (-0.42, 0.42), (-0.42, -0.45)]
    chain = ActionChains(browser, duration=20)
    chain.move_to_element_with_offset(canvas, int(-0.42 * width), int(-0.45 * height))
    chain.click_and_hold()
    for x, y in corners:
        chain.move_to_element_with_offset(canvas, int(x * width), int(y * height))
    chain.release().perform()
    return until(lambda: text_of(browser, "chosen-count"))


class Server:
    """The command itself, in a process of its own."""

    def __init__(self, folder, *options):
        words = [sys.executable, "-m", "gnomon", "label", "table.csv", "--target", "kind"]
        words += ["--id", "name", "--no-browser", *options]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(words, cwd=folder, env=environment, text=True, **pipes)
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.process.stderr.read()

    def end(self, how=signal.SIGKILL):
        os.kill(self.process.pid, how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def journal(folder):
    lines = (Path(folder) / "table-labels" / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def given(folder):
    """Class by row of what the journal has, taken back where it was."""
    entries, done = journal(folder)[1:], {}
    undone = {entry["of"] for entry in entries if entry["do"] == "undo"}
    for number, entry in enumerate(entries):
        if entry["do"] == "label" and number not in undone:
            done |= dict.fromkeys(entry["rows"], entry["name"])
    return done


def test_a_whole_session_is_labelled_killed_and_gone_on_with(show, write_table, tmp_path):
    path, truth = write_table(tmp_path, n=120)
    before = path.read_bytes()
    server = Server(tmp_path)
    try:
        page = show(server.url)
        rows = [give(page, truth) for _ in range(30)]
        assert len(set(rows)) == 30
        until(lambda: given(tmp_path) == {row: truth[row] for row in rows})

        press(page, "u")
        until(lambda: len(given(tmp_path)) == 29)
        assert rows[-1] not in given(tmp_path)
        until(lambda: shown_row(page) == rows[-1])
        give(page, truth)
        until(lambda: given(tmp_path) == {row: truth[row] for row in rows})

        assert "rows selected" in lasso(page)
        press(page, "g")
        until(lambda: "several classes" in text_of(page, "told"))
        press(page, Keys.ESCAPE)
        show_only(page, "ant")
        lasso(page)
        press(page, "g")
        together = until(lambda: [e for e in journal(tmp_path)[1:] if e["do"] == "together"])
        assert len(together) == 1
        assert np.mean(truth[together[0]["rows"]] == "ant") > 0.8

        page.refresh()
        until(lambda: shown_row(page) is not None)
        assert text_of(page, "summary").startswith("33 labels of 120 rows")
        assert errors(page) == []

        server.end()
        server = Server(tmp_path)
        page = show(server.url)
        assert text_of(page, "summary").startswith("33 labels of 120 rows")
        more = give(page, truth)
        assert more not in rows
        until(lambda: given(tmp_path) == {row: truth[row] for row in [*rows, more]})
        assert errors(page) == []
    finally:
        code, out, err = server.end(signal.SIGINT)
    assert (code, err.count("Traceback")) == (0, 0)
    assert "34 of 120 rows" in out
    assert path.read_bytes() == before


def test_a_label_that_the_page_has_shown_survives_a_kill_at_once(show, write_table, tmp_path):
    _, truth = write_table(tmp_path)
    server = Server(tmp_path)
    page = show(server.url)
    row = give(page, truth)
    until(lambda: text_of(page, "summary").startswith("4 labels"))
    server.end()
    assert given(tmp_path) == {row: truth[row]}
    until(lambda: "does not answer" in text_of(page, "lost"))
    press(page, "1")
    until(lambda: text_of(page, "told").startswith("Not saved"))


def test_two_windows_agree(show, begin, browser):
    opened, truth = begin()
    first = show(opened.url).current_window_handle
    browser.switch_to.new_window("window")
    second = browser.current_window_handle
    browser.get(opened.url)
    until(lambda: shown_row(browser) is not None)
    row = give(browser, truth)
    browser.switch_to.window(first)
    until(lambda: text_of(browser, "summary").startswith("4 labels"))
    # What one window labels is no longer offered by the other.
    until(lambda: shown_row(browser) not in (None, row))
    press(browser, "u")
    until(lambda: text_of(browser, "summary").startswith("3 labels"))
    browser.switch_to.window(second)
    until(lambda: text_of(browser, "summary").startswith("3 labels"))
    assert errors(browser) == []
    browser.close()
    browser.switch_to.window(first)


def test_a_lasso_labels_all_rows_within_it(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    assert "rows selected" in lasso(page)
    n = int(text_of(page, "chosen-count").split()[0])
    press(page, "2")
    until(lambda: labels_of(opened).count("bee") >= n)
    until(lambda: text_of(page, "chosen-count").startswith("0"))
    press(page, "u")
    until(lambda: labels_of(opened).count("bee") == 1)
    assert opened._session.record.entry(0).origin == "person"
    assert errors(page) == []


def test_a_point_that_is_clicked_comes_on_the_card(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    page.find_element(By.ID, "search").send_keys("row 77", Keys.ENTER)
    until(lambda: shown_row(page) == 77)
    assert text_of(page, "row-name") == "row 77"
    page.execute_script("document.activeElement.blur()")
    press(page, "3")
    until(lambda: labels_of(opened)[77] == "cow")
    assert opened._session.record.entry(0).origin == "person"
    assert errors(page) == []


def test_a_new_class_is_one_key_and_its_name(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    row = shown_row(page)
    press(page, "n")
    until(lambda: page.execute_script("return document.activeElement.id") == "new-name")
    # Keys are letters while a name is written.
    press(page, "1 new kind u")
    press(page, Keys.ENTER)
    until(lambda: labels_of(opened)[row] == "1 new kind u")
    until(lambda: "1 new kind u" in text_of(page, "classes"))
    assert errors(page) == []


def test_a_row_that_is_skipped_is_not_offered_again(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    row = shown_row(page)
    press(page, Keys.SPACE)
    until(lambda: shown_row(page) not in (None, row))
    until(lambda: opened._session.record.skipped[row])
    page.refresh()
    until(lambda: opened._session.state.version > 1)
    until(lambda: shown_row(page) not in (None, row))
    assert labels_of(opened)[row] is None


def test_the_map_moves_to_its_new_place_and_the_card_follows(show, begin):
    opened, truth = begin()
    page = show(opened.url)
    version = int(dataset(page, "canvas", "version"))
    frames = int(dataset(page, "canvas", "frames"))
    give(page, truth)
    until(lambda: int(dataset(page, "canvas", "version")) > version)
    until(lambda: int(dataset(page, "canvas", "moves") or 0) >= 1)
    until(lambda: int(dataset(page, "canvas", "frames")) > frames + 1)


def test_a_slip_is_shown_and_one_key_looks_at_it_again(show, begin):
    opened, truth = begin()
    page = show(opened.url)
    for row in range(10, 40):
        name = "cow" if row == 12 else str(truth[row])
        opened._session.act({"do": "label", "rows": [row], "name": name})
    assert truth[12] == "ant"
    until(lambda: "row 12" in text_of(page, "slips"), 90)
    press(page, "r")
    until(lambda: shown_row(page) is not None and "Its label is" in text_of(page, "given"))
    # The key goes from slip to slip, and the row on the card changes at once.
    for _ in range(20):
        if dataset(page, "card", "row") == "12":
            break
        press(page, "r")
    until(lambda: shown_row(page) == 12)
    press(page, "1")
    until(lambda: labels_of(opened)[12] == "ant")
    assert "%" in text_of(page, "verdict")
    assert page.find_elements(By.CSS_SELECTOR, "#chart svg path.line")


def test_the_results_are_saved_by_a_button(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    page.find_element(By.ID, "save").click()
    until(lambda: text_of(page, "told").startswith("Written"), 60)
    names = {path.name for path in opened._session.folder.iterdir()}
    assert names == {"journal.jsonl", "labels.csv", "model.gnomon", "report.html"}
    assert errors(page) == []


def test_an_image_and_a_text_are_on_the_card(show, begin, tmp_path):
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
        "0000000d49444154789c6360f8cfc000000301010018dd8db00000000049454e44ae426082"
    )
    (tmp_path / "a.png").write_bytes(pixel)
    texts = [f"note of {i}" for i in range(90)]
    shown = {"image": "photo", "text": "note"}
    opened, _ = begin(shown, photo=["a.png"] * 90, note=texts)
    page = show(opened.url)
    size = "return document.getElementById('image').naturalWidth"
    until(lambda: page.execute_script(size) == 1)
    assert text_of(page, "text") == f"note of {shown_row(page)}"
    assert errors(page) == []


def test_an_image_that_is_not_there_is_named(show, begin):
    opened, _ = begin({"image": "photo"}, photo=["<lost>.png"] * 90)
    page = show(opened.url)
    assert "<lost>.png is no image file" in text_of(page, "no-image")
    assert not page.find_element(By.ID, "image").is_displayed()
    assert errors(page) == []


def test_a_newcomer_is_asked_for_the_first_class_and_then_for_that_of_each_row(show, tmp_path):
    rows = from_arrays(np.random.default_rng(0).normal(size=(30, 4)))
    with LabellingPage(open_session(rows, tmp_path / "out"), open_browser=False) as opened:
        page = show(opened.url)
        assert text_of(page, "ask") == "Which label is this row? Name the first class."
        assert text_of(page, "new-words") == "Name the first class"
        assert text_of(page, "why").startswith("Why this row: stands for")
        press(page, "n")
        until(lambda: page.find_element(By.ID, "new-name").is_displayed())
        assert text_of(page, "new-title").startswith("Class of ")
        press(page, "wren" + Keys.ENTER)
        until(lambda: "or name another" in text_of(page, "ask"))
        assert not page.find_element(By.ID, "again").is_displayed()


def test_rows_whose_text_has_a_word_are_found_and_labelled_at_once(show, begin):
    texts = [f"{'refund please' if i % 9 == 4 else 'thank you'}, {i}" for i in range(90)]
    opened, _ = begin({"text": "note"}, note=texts)
    page = show(opened.url)
    page.find_element(By.ID, "search").send_keys("refund")
    until(lambda: "Select all 10" in text_of(page, "found"))
    page.find_element(By.XPATH, "//ul[@id='found']//button[text()='Select all 10']").click()
    until(lambda: text_of(page, "chosen-count").startswith("10 rows"))
    press(page, "2")
    # Some rows have their labels from the table, so one of that class is not yet the answer.
    until(lambda: all(labels_of(opened)[i] == "bee" for i in range(4, 90, 9)))
    assert errors(page) == []


def test_hostile_names_are_text_and_nothing_else(show, write_table, open_rows, tmp_path, hostile):
    ids = [f"{hostile[i % len(hostile)]} {i}" for i in range(90)]
    path, _ = write_table(
        tmp_path, classes=hostile[:3], names=hostile[2:5], name=ids, note=ids, photo=ids
    )
    rows = open_rows(path, text="note", image="photo", classes=hostile[3:])
    with LabellingPage(open_session(rows, tmp_path / "out"), open_browser=False) as opened:
        page = show(opened.url)
        for key in ("1", "2", "3", Keys.SPACE, "u", "4"):
            press(page, key)
            time.sleep(0.2)
        press(page, "n")
        press(page, '<img src=x onerror="window.pwned=9">' + Keys.ENTER)
        until(lambda: '<img src=x onerror="window.pwned=9">' in text_of(page, "classes"))
        lasso(page)
        press(page, "g")
        page.execute_script("document.getElementById('save').click()")
        until(lambda: text_of(page, "told").startswith("Written"), 60)
        assert page.execute_script("return typeof window.pwned") == "undefined"
        assert page.execute_script("return document.scripts.length") == 2
        loaded = page.execute_script(
            "return performance.getEntriesByType('resource').map((e) => new URL(e.name).origin)"
        )
        assert set(loaded) <= {opened.url.rsplit("/", 2)[0]}
        assert errors(page) == []


def test_nothing_is_asked_of_the_network_but_of_the_server(show, begin, browser):
    opened, truth = begin()
    page = show(opened.url)
    give(page, truth)
    until(lambda: int(dataset(page, "canvas", "version")) > 1)
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"].endswith("WillBeSent")]
    assert sent
    assert [url for url in sent if not url.startswith((opened.url, "data:", "about:"))] == []


@pytest.mark.parametrize(("width", "scheme"), [(1300, "light"), (1300, "dark"), (390, "light")])
def test_nothing_is_wider_than_the_page(show, begin, width, scheme):
    opened, _ = begin()
    page = show(opened.url, width=width, scheme=scheme)
    wide, room = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room
    colour = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(18, 22, 28)") == (scheme == "dark")


def test_a_person_who_does_not_see_it_is_told(show, begin):
    opened, truth = begin()
    page = show(opened.url)
    nameless = page.execute_script(
        "return [...document.querySelectorAll('button, input, select, canvas, img')]"
        ".filter((e) => !e.ariaHidden && e.offsetParent)"
        ".filter((e) => !(e.textContent.trim() || e.ariaLabel || e.alt !== undefined"
        " || (e.labels && e.labels.length) || e.title)).map((e) => e.outerHTML)"
    )
    assert nameless == []
    row = shown_row(page)
    until(lambda: text_of(page, "live").startswith(f"row {row}."))
    give(page, truth)
    until(lambda: text_of(page, "live").startswith(f"row {shown_row(page)}."))
    assert page.execute_script("return document.getElementById('live').ariaLive") == "polite"


def test_every_class_can_be_given_by_a_button_and_the_keys_switched_off(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    press(page, "?")
    until(lambda: page.execute_script("return document.getElementById('keys-dialog').open"))
    page.find_element(By.ID, "keys-on").click()
    press(page, Keys.ESCAPE)
    until(lambda: not page.execute_script("return document.getElementById('keys-dialog').open"))
    row = until(lambda: shown_row(page) is not None and (shown_row(page),))[0]
    press(page, "1")
    page.find_elements(By.CSS_SELECTOR, "#classes button")[1].click()
    until(lambda: labels_of(opened)[row] == "bee")
    # After a click the focus is on the card, so that the space bar presses nothing again.
    assert page.execute_script("return document.activeElement.id") == "card"


def test_numbers_can_be_read_instead_of_lanes(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    assert page.find_elements(By.CSS_SELECTOR, "#values svg.strip")
    page.find_element(By.ID, "numbers").click()
    until(lambda: "±" in text_of(page, "values"))
    assert not page.find_elements(By.CSS_SELECTOR, "#values svg.strip")


def test_uncertainty_and_certainty_are_drawn_when_asked_for(show, begin):
    opened, _ = begin()
    page = show(opened.url)
    picture = "return document.getElementById('canvas').toDataURL()"
    plain = page.execute_script(picture)
    page.find_element(By.ID, "ellipses").click()
    until(lambda: page.execute_script(picture) != plain)
    uncertain = page.execute_script(picture)
    colour = page.find_element(By.ID, "colour")
    colour.send_keys("probability")
    until(lambda: text_of(page, "legend-title") == "probability of the class")
    until(lambda: page.execute_script(picture) not in (plain, uncertain))
    assert np.isfinite(float(text_of(page, "high")))

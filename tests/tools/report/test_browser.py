"""The report in a real browser: no request, nothing injected, all controls work."""

import base64
import csv
import re
import struct
import time
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from gnomon.displays.style import PALETTE
from gnomon.tools.report.page import write_report

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


@pytest.fixture(scope="module")
def pages(make_subject, hostile_subject, hostile, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    twenty = make_subject(n=200, classes=[f"class number {i + 1}" for i in range(20)])
    wide = make_subject(n=30, names=[f"gene {i}" for i in range(300)])
    return {
        "plain": write_report(folder / "plain.html", make_subject()),
        "twenty": write_report(folder / "twenty.html", twenty),
        "wide": write_report(folder / "wide.html", wide),
        "laid out": write_report(folder / "laid_out.html", make_subject(laid_out=True)),
        "hostile": write_report(folder / "hostile.html", hostile_subject, notes=hostile),
    }


@pytest.fixture
def show(browser, screen, pages):
    def open_page(name, *, width=1280, height=900, scheme="light"):
        screen(width=width, height=height, scheme=scheme, touch=width < 600)
        browser.get(f"file://{pages.get(name, name)}")
        settle(browser)
        return browser

    return open_page


def settle(browser):
    """Wait for a frame after the last change."""
    browser.execute_async_script(
        "const done = arguments[0];"
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 20)));"
    )


def errors(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def click(browser, identity):
    browser.execute_script("document.getElementById(arguments[0]).click()", identity)
    settle(browser)


def text_of(browser, identity):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).textContent", identity
    )


def picture(browser):
    return browser.execute_script("return document.getElementById('canvas').toDataURL()")


def find(browser, name):
    """Search for a row and go to it; its place on the canvas."""
    box = browser.find_element(By.ID, "search")
    box.clear()
    box.send_keys(name, Keys.ENTER)
    settle(browser)
    return browser.execute_script(
        "const t = document.getElementById('tip').dataset; return [Number(t.x), Number(t.y)]"
    )


@pytest.fixture
def saved(browser, tmp_path_factory):
    """Press a button that saves a file; the file."""

    def save(identity):
        folder = tmp_path_factory.mktemp("saved")
        where = {"behavior": "allow", "downloadPath": str(folder)}
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", where)
        click(browser, identity)
        return until(lambda: next(iter(whole_files(folder)), None))

    return save


def whole_files(folder):
    return [path for path in folder.iterdir() if path.suffix in {".png", ".svg", ".csv"}]


def until(found):
    """The first result that is not false, waited for."""
    for _ in range(200):
        result = found()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError("it did not happen")


SVG = "{http://www.w3.org/2000/svg}"


def points_of(path):
    """Names and places of the points in a saved drawing."""
    marks = [
        mark for mark in ElementTree.parse(path).iter() if mark.find(f"{SVG}title") is not None
    ]
    circles = {mark.find(f"{SVG}title").text: mark.attrib for mark in marks}
    return {name: (float(a["cx"]), float(a["cy"])) for name, a in circles.items()}


def centre_canvas(browser):
    """Scroll the canvas into the middle of the window; where it is then."""
    return browser.execute_script(
        "const c = document.getElementById('canvas');"
        "c.scrollIntoView({block: 'center', behavior: 'instant'});"
        "const b = c.getBoundingClientRect(); return [b.left, b.top]"
    )


def drag(browser, path, *, shift=False):
    """Press the mouse at the first place on the canvas, move through the others, let go."""
    left, top = centre_canvas(browser)
    kinds = ["mousePressed", *["mouseMoved"] * (len(path) - 1), "mouseReleased"]
    for kind, (x, y) in zip(kinds, [*path, path[-1]], strict=True):
        event = {"type": kind, "x": left + x, "y": top + y, "modifiers": 8 * shift}
        held = {"button": "left", "buttons": 1, "clickCount": 1}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event | held)
    settle(browser)


def table_rows(browser):
    """The cells of the rows that the table shows."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#rows-body tr:not(.spacer)')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )


def write_filter(browser, name, text):
    box = browser.find_element(By.CSS_SELECTOR, f"#rows-head [aria-label='Filter {name}']")
    box.clear()
    box.send_keys(text)
    settle(browser)


def sort_by(browser, name):
    browser.execute_script(
        "[...document.querySelectorAll('#rows-head th button')]"
        ".find((b) => b.textContent === arguments[0]).click()",
        name,
    )
    settle(browser)


def test_it_loads_without_errors_or_requests(show, pages):
    browser = show("plain")
    assert errors(browser) == []
    sent = [
        e["message"] for e in browser.get_log("performance") if "requestWillBeSent" in e["message"]
    ]
    foreign = [m for m in sent if "file://" not in m and '"url":"data:' not in m]
    assert foreign == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") <= 1
    assert int(browser.execute_script("return document.getElementById('canvas').dataset.frames"))


def test_the_picture_shows_the_points(show):
    browser = show("plain")
    colours = browser.execute_script(
        "const c = document.getElementById('canvas');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "const s = new Set(); for (let i = 0; i < d.length; i += 4)"
        " s.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]); return [...s]"
    )
    expected = [[str(int(colour[k : k + 2], 16)) for k in (1, 3, 5)] for colour in PALETTE[:3]]
    assert {",".join(channels) for channels in expected} <= set(colours)


def test_pointing_at_a_row_shows_it(show):
    browser = show("plain")
    x, y = find(browser, "row 17")
    assert text_of(browser, "tip").startswith("row 17")
    browser.find_element(By.ID, "canvas").send_keys(Keys.ESCAPE)
    settle(browser)
    canvas = browser.find_element(By.ID, "canvas")
    size = canvas.size
    move = ActionChains(browser, duration=0)
    move.move_to_element_with_offset(canvas, 5 - size["width"] // 2, 5 - size["height"] // 2)
    move.move_to_element_with_offset(
        canvas, round(x - size["width"] / 2), round(y - size["height"] / 2)
    ).perform()
    settle(browser)
    assert text_of(browser, "tip").startswith("row 17")
    assert "site" in text_of(browser, "detail")


def test_the_legend_hides_a_class(show):
    browser = show("plain")
    before = picture(browser)
    entry = browser.find_elements(By.CSS_SELECTOR, "#legend button")[0]
    assert entry.get_attribute("title") == "a"
    entry.click()
    settle(browser)
    entry = browser.find_elements(By.CSS_SELECTOR, "#legend button")[0]
    assert entry.get_attribute("aria-pressed") == "false"
    assert picture(browser) != before
    entry.click()
    settle(browser)


def test_search_finds_rows_and_says_when_there_is_none(show):
    browser = show("plain")
    box = browser.find_element(By.ID, "search")
    box.send_keys("row 1")
    settle(browser)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#found button")) == 11
    box.send_keys("xyz")
    settle(browser)
    assert text_of(browser, "found") == "no row has that in its name"


def test_every_control_redraws_without_errors(show):
    browser = show("plain")
    seen = {picture(browser)}
    for identity in ("ellipses", "arrows", "closer", "farther", "reset", "theme"):
        click(browser, identity)
        seen.add(picture(browser))
    colour = Select(browser.find_element(By.ID, "colour"))
    for option in range(len(colour.options)):
        colour.select_by_index(option)
        settle(browser)
        seen.add(picture(browser))
    Select(browser.find_element(By.ID, "across")).select_by_index(1)
    settle(browser)
    browser.execute_script("document.querySelector('[data-row]').click()")
    settle(browser)
    seen.add(picture(browser))
    assert len(seen) >= 10
    assert errors(browser) == []


def scroll_on(browser, identity, *, control=False, by=120):
    """A notch of a real wheel over an element; how far the page has moved."""
    x, y, before = browser.execute_script(
        "const b = document.getElementById(arguments[0]).getBoundingClientRect();"
        "return [b.left + b.width / 3, b.top + b.height / 3, scrollY]",
        identity,
    )
    event = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": by}
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", event | {"modifiers": 2 * control})
    time.sleep(0.4)
    settle(browser)
    return browser.execute_script("return scrollY") - before


def test_the_wheel_scrolls_the_page_and_says_how_to_zoom(show):
    browser = show("plain")
    before = picture(browser)
    assert scroll_on(browser, "canvas") > 0
    assert picture(browser) == before
    assert "To zoom, hold" in text_of(browser, "how")


def test_the_wheel_zooms_with_control_and_after_a_click(show):
    browser = show("plain")
    seen = {picture(browser)}
    assert scroll_on(browser, "canvas", control=True) == 0
    seen.add(picture(browser))
    drag(browser, [(300, 200)])
    seen.add(picture(browser))
    assert scroll_on(browser, "canvas") == 0
    seen.add(picture(browser))
    assert len(seen) == 4
    ActionChains(browser, duration=0).move_to_element(
        browser.find_element(By.ID, "legend-title")
    ).perform()
    assert scroll_on(browser, "canvas") > 0


def test_dragging_moves_the_picture(show, saved):
    browser = show("plain")
    before = points_of(saved("save-svg"))
    drag(browser, [(300, 300), (320, 310), (360, 340)])
    after = points_of(saved("save-svg"))
    for name in set(before) & set(after):
        assert np.allclose(np.subtract(after[name], before[name]), [60, 40], atol=0.1)


def test_a_saved_drawing_has_points_axes_and_legend(show, saved):
    browser = show("plain", scheme="dark")
    before = picture(browser)
    path = saved("save-svg")
    root = ElementTree.parse(path).getroot()
    assert len(points_of(path)) == 90
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"kind", "a", "b", "c"} <= texts
    assert any(text.startswith("z1 (") for text in texts)
    backs = [rect.get("fill") for rect in root.iter(f"{SVG}rect")]
    assert backs[0] == "#ffffff"
    assert picture(browser) == before
    click(browser, "ellipses")
    root = ElementTree.parse(saved("save-svg")).getroot()
    assert len(list(root.iter(f"{SVG}ellipse"))) == 90
    assert errors(browser) == []


def test_a_saved_image_is_a_png_three_times_as_fine(show, saved):
    browser = show("plain")
    width, height = browser.execute_script(
        "const b = document.getElementById('canvas').getBoundingClientRect();"
        "return [b.width, b.height]"
    )
    content = saved("save-png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    wide, high = struct.unpack(">II", content[16:24])
    assert wide > 3 * width
    assert high == round(3 * height)
    assert len(content) > 50_000
    assert errors(browser) == []


def test_hostile_names_are_text_in_saved_files(show, saved, hostile):
    show("hostile")
    path = saved("save-svg")
    assert {mark.tag.removeprefix(SVG) for mark in ElementTree.parse(path).iter()} <= {
        *("svg", "rect", "path", "circle", "ellipse", "text", "title", "g", "clipPath")
    }
    names = set(points_of(path))
    assert f"{hostile[1]} 1" in names
    rows = list(csv.reader(saved("save-rows").open(encoding="utf-8", newline="")))
    cells = {cell for row in rows for cell in row}
    assert f"'{hostile[5]} 5" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]


@pytest.mark.parametrize("way", ["mode", "shift"])
def test_a_box_selects_what_lies_in_it(show, saved, way):
    browser = show("plain")
    points = points_of(saved("save-svg"))
    x, y = np.median(list(points.values()), axis=0)
    corners = [(x - 120, y - 90), (x, y), (x + 130, y + 100)]
    expected = {
        name for name, (a, b) in points.items() if x - 120 < a < x + 130 and y - 90 < b < y + 100
    }
    if way == "mode":
        click(browser, "box")
    drag(browser, corners, shift=way == "shift")
    rows = list(csv.DictReader(saved("save-rows").open(encoding="utf-8", newline="")))
    assert {row["name"] for row in rows} == expected
    assert 0 < len(expected) < 90
    assert text_of(browser, "rows-count") == f"{len(expected)} of 90 rows selected"
    assert {row[0] for row in table_rows(browser)} <= expected
    browser.find_element(By.ID, "canvas").send_keys(Keys.ESCAPE)
    settle(browser)
    assert text_of(browser, "rows-count") == "90 rows"


def test_a_lasso_selects_what_lies_in_it(show, saved):
    browser = show("plain")
    points = points_of(saved("save-svg"))
    centre = np.median(list(points.values()), axis=0)
    turns = np.linspace(0, 2 * np.pi, 60)
    circle = [tuple(centre + 110 * np.array([np.cos(a), np.sin(a)])) for a in turns]
    click(browser, "lasso")
    before = picture(browser)
    drag(browser, circle)
    rows = list(csv.DictReader(saved("save-rows").open(encoding="utf-8", newline="")))
    chosen = {row["name"] for row in rows}
    far = {name: np.hypot(*np.subtract(place, centre)) for name, place in points.items()}
    assert {name for name in far if far[name] < 107} <= chosen
    assert chosen <= {name for name in far if far[name] < 111}
    assert len(chosen) > 3
    assert picture(browser) != before
    assert errors(browser) == []


def test_saved_rows_hold_what_the_table_of_the_model_holds(show, saved, make_subject):
    subject = make_subject()
    browser = show("plain")
    rows = list(csv.DictReader(saved("save-rows").open(encoding="utf-8", newline="")))
    assert [row["name"] for row in rows] == [f"row {i}" for i in range(90)]
    np.testing.assert_allclose([float(row["z1"]) for row in rows], subject.Z[:, 0], rtol=1e-5)
    given = [row["kind, given"] or None for row in rows]
    assert given == list(subject.ready.y)
    assert [row["kind, predicted"] for row in rows] == list(subject.predicted)
    assert rows[2]["day"] == "2024-03-01"
    assert errors(browser) == []


def test_the_table_sorts_and_filters(show):
    browser = show("plain")
    sort_by(browser, "name")
    assert [row[0] for row in table_rows(browser)[:3]] == ["row 0", "row 1", "row 2"]
    sort_by(browser, "name")
    assert [row[0] for row in table_rows(browser)[:2]] == ["row 89", "row 88"]
    sort_by(browser, "z1")
    names = [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, "#rows-head th button")]
    z1 = names.index("z1")
    values = [float(row[z1]) for row in table_rows(browser)]
    assert values == sorted(values)
    write_filter(browser, "z1", ">0.5")
    assert min(float(row[z1]) for row in table_rows(browser)) > 0.5
    predicted = names.index("kind, predicted")
    first = table_rows(browser)[0][predicted]
    write_filter(browser, "kind, predicted", first)
    assert {row[predicted] for row in table_rows(browser)} == {first}
    click(browser, "select-rows")
    assert re.fullmatch(r"\d+ of 90 rows selected", text_of(browser, "rows-count"))
    click(browser, "clear-rows")
    assert text_of(browser, "rows-count") == "90 rows"
    assert errors(browser) == []


def test_gaps_come_last_both_ways(show):
    browser = show("plain")
    for _ in range(2):
        sort_by(browser, "u")
        browser.execute_script("document.getElementById('rows').scrollTop = 1e6")
        time.sleep(0.1)
        settle(browser)
        names = browser.execute_script(
            "return [...document.querySelectorAll('#rows-head th')].map((c) => c.textContent)"
        )
        assert table_rows(browser)[-1][names.index("u")] == "\u2013"


def test_dates_are_dates(show):
    browser = show("plain")
    Select(browser.find_element(By.ID, "colour")).select_by_visible_text("day")
    settle(browser)
    assert text_of(browser, "low") == "2024-02-28"
    assert text_of(browser, "high") == "2024-05-27"
    find(browser, "row 1")
    assert "day: 2024-02-29" in text_of(browser, "tip")
    write_filter(browser, "day", "2024-03-01..2024-03-03")
    assert [row[0] for row in table_rows(browser)] == ["row 2", "row 3", "row 4"]
    write_filter(browser, "day", ">2024-05-25")
    assert len(table_rows(browser)) == 2


def test_a_row_of_the_table_and_its_point_are_marked_together(show):
    browser = show("plain")
    browser.execute_script("document.querySelectorAll('#rows-body tr')[4].click()")
    settle(browser)
    assert text_of(browser, "detail").startswith("row 3")
    kept = "return document.querySelector('#rows-body .kept').textContent"
    assert browser.execute_script(kept).startswith("row 3")
    place = find(browser, "row 80")
    browser.find_element(By.ID, "canvas").send_keys(Keys.ESCAPE)
    drag(browser, [place])
    assert text_of(browser, "detail").startswith("row 80")
    assert browser.execute_script(kept).startswith("row 80")


def test_twenty_classes_are_all_in_the_legend_and_look_different(show, saved):
    browser = show("twenty")
    looks = browser.execute_script(
        "return [...document.querySelectorAll('#legend canvas')].map((c) => c.toDataURL())"
    )
    assert len(set(looks)) == 20
    entries = browser.find_elements(By.CSS_SELECTOR, "#legend .name")
    assert [entry.text for entry in entries][:2] == ["class number 1", "class number 2"]
    path = saved("save-svg")
    browser.get(f"file://{path}")
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('text[font-weight]')]"
        ".filter((t) => t.getAttribute('fill') !== 'none' && t.textContent.includes('class'))"
        ".map((t) => { const b = t.getBBox(); return [b.x, b.y, b.x + b.width, b.y + b.height]; })"
    )
    assert len(boxes) > 5
    for i, (a0, b0, a1, b1) in enumerate(boxes):
        for c0, d0, c1, d1 in boxes[:i]:
            assert a1 <= c0 or c1 <= a0 or b1 <= d0 + 2 or d1 <= b0 + 2


def test_names_and_density_can_be_switched(show):
    browser = show("plain")
    seen = {picture(browser)}
    for identity in ("names", "density", "density"):
        click(browser, identity)
        seen.add(picture(browser))
    assert len(seen) == 3
    assert browser.find_element(By.ID, "names").get_attribute("aria-pressed") == "false"


def test_a_column_among_many_is_found_by_its_name(show, saved):
    browser = show("wide")
    assert not browser.find_element(By.ID, "colour").is_displayed()
    box = browser.find_element(By.ID, "colour-name")
    box.click()
    box.send_keys("299")
    settle(browser)
    choices = browser.find_elements(By.CSS_SELECTOR, "#colour-list li")
    assert [item.text for item in choices] == ["gene 299"]
    box.send_keys(Keys.ENTER)
    settle(browser)
    assert text_of(browser, "legend-title") == "gene 299"
    heads = browser.find_elements(By.CSS_SELECTOR, "#rows-head th")
    assert [head.text for head in heads][:2] == ["name", "gene 299"]
    assert "columns more are in the csv" in text_of(browser, "rows-hint")
    header = saved("save-rows").open(encoding="utf-8").readline()
    assert header.count("gene ") == 300
    assert errors(browser) == []


def test_hostile_names_inject_nothing(show, hostile):
    browser = show("hostile")
    colour = Select(browser.find_element(By.ID, "colour"))
    for option in range(len(colour.options)):
        colour.select_by_index(option)
        settle(browser)
    click(browser, "arrows")
    find(browser, hostile[2])
    assert hostile[2] in text_of(browser, "tip")
    time.sleep(0.1)
    assert browser.execute_script("return typeof window.pwned") == "undefined"
    assert browser.execute_script("return document.images.length") == 0
    assert browser.execute_script("return document.scripts.length") == 2
    assert errors(browser) == []
    assert "onerror=window.pwned" in browser.title


def test_the_policy_stops_what_should_not_be_there(show):
    browser = show("plain")
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 1';"
        "document.body.append(s);"
        "const i = document.createElement('img'); i.src = 'http://127.0.0.1:9/x.png';"
        "document.body.append(i);"
    )
    settle(browser)
    assert browser.execute_script("return typeof window.pwned") == "undefined"
    refused = errors(browser)
    assert any("script" in message for message in refused)
    assert any("127.0.0.1" in message for message in refused)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_follows_the_scheme_and_fits_a_phone(show, scheme):
    browser = show("hostile", width=390, height=844, scheme=scheme)
    wide, room = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert wide <= room == 390
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in colour[4:-1].split(",")]
    assert (np.mean(channels) > 128) == (scheme == "light")
    assert errors(browser) == []


def test_a_tap_on_a_phone_keeps_the_row(show):
    browser = show("plain", width=390, height=844)
    x, y = find(browser, "row 5")
    browser.execute_script(
        "const c = document.getElementById('canvas'), b = c.getBoundingClientRect();"
        "for (const type of ['pointerdown', 'pointerup']) c.dispatchEvent(new PointerEvent(type,"
        " {pointerId: 7, pointerType: 'touch', clientX: b.left + arguments[0],"
        " clientY: b.top + arguments[1]}))",
        x,
        y,
    )
    settle(browser)
    assert text_of(browser, "detail").startswith("row 5")


def touch(browser, kind, *places):
    points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
    event = {"type": kind, "touchPoints": points}
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", event)


def fingers(browser, *paths):
    """Fingers that go along paths over the canvas, all at once."""
    left, top = centre_canvas(browser)
    steps = list(zip(*[[(left + x, top + y) for x, y in path] for path in paths], strict=True))
    touch(browser, "touchStart", *steps[0])
    for places in steps[1:]:
        touch(browser, "touchMove", *places)
        time.sleep(0.02)
    touch(browser, "touchEnd")
    time.sleep(0.3)
    settle(browser)


def test_one_finger_scrolls_the_page_and_two_zoom_the_picture(show):
    browser = show("plain", width=390, height=844)
    before = picture(browser)
    centre_canvas(browser)
    start = browser.execute_script("return scrollY")
    fingers(browser, [(150, 300 - 20 * k) for k in range(10)])
    assert browser.execute_script("return scrollY") > start + 50
    assert picture(browser) == before
    fingers(
        browser,
        [(150 - 6 * k, 200) for k in range(10)],
        [(200 + 6 * k, 200) for k in range(10)],
    )
    assert picture(browser) != before
    assert browser.execute_script("return visualViewport.scale") == 1
    assert errors(browser) == []


def test_a_finger_selects_in_a_selection_mode(show):
    browser = show("plain", width=390, height=844)
    click(browser, "lasso")
    centre_canvas(browser)
    start = browser.execute_script("return scrollY")
    turns = np.linspace(0, 2 * np.pi, 20)
    fingers(browser, [(180 + 120 * np.cos(a), 190 + 120 * np.sin(a)) for a in turns])
    assert browser.execute_script("return scrollY") == start
    assert "rows selected" in text_of(browser, "rows-count")


@pytest.mark.parametrize("name", ["twenty", "wide", "hostile"])
def test_no_page_is_wider_than_a_phone(show, name):
    browser = show(name, width=390, height=844)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    canvas = browser.find_element(By.ID, "canvas").size
    assert wide == 390
    assert canvas["width"] > 330
    boxes = browser.execute_script(
        "return ['canvas', 'legend', 'detail']"
        ".map((i) => document.getElementById(i).getBoundingClientRect().top)"
    )
    assert boxes == sorted(boxes)


@pytest.mark.parametrize("name", ["twenty", "wide"])
def test_it_prints_whole_with_a_row_kept(show, name):
    browser = show(name, scheme="dark")
    find(browser, "row 7")
    before = picture(browser)
    content = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 1
    assert browser.execute_script("return document.documentElement.dataset.theme") is None
    settle(browser)
    assert picture(browser) == before
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    size = {"width": 720, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    settle(browser)
    shown = {
        identity: browser.find_element(By.ID, identity).is_displayed()
        for identity in ("tip", "rows-card", "closer", "theme", "canvas", "legend", "detail")
    }
    assert {name for name in shown if shown[name]} == {"canvas", "legend", "detail"}
    cut = browser.execute_script(
        "return ['legend', 'detail', 'embedding'].filter((i) => {"
        " const e = document.getElementById(i); return e.scrollHeight > e.clientHeight + 1; })"
    )
    assert cut == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 720
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert errors(browser) == []


def test_everything_to_press_or_fill_has_a_name(show):
    browser = show("plain")
    nameless = browser.execute_script(
        "return [...document.querySelectorAll('button, input, select')].filter((e) =>"
        " !(e.textContent.trim() || e.getAttribute('aria-label') || (e.labels || []).length))"
        ".map((e) => e.outerHTML)"
    )
    assert nameless == []
    box = browser.find_element(By.ID, "search")
    box.send_keys(Keys.TAB)
    first = browser.execute_script("return document.activeElement.id")
    assert first == "move"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(show, scheme):
    browser = show("plain", scheme=scheme)
    pairs = [("ink", "card"), ("soft", "card"), ("soft", "page"), ("accent-ink", "accent")]
    for front, back in pairs:
        colours = browser.execute_script(
            "const s = getComputedStyle(document.documentElement);"
            "return arguments[0].map((name) => s.getPropertyValue('--' + name).trim())",
            [front, back],
        )
        low, high = sorted(luminance(colour) for colour in colours)
        assert (high + 0.05) / (low + 0.05) >= 4.5


def luminance(colour):
    values = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.slow
def test_a_hundred_thousand_points_stay_usable(show, make_subject, tmp_path):
    path = write_report(tmp_path / "large.html", make_subject(n=100_000))
    browser = show(path)
    frames = "return Number(document.getElementById('canvas').dataset.frames)"
    before = browser.execute_script(frames)
    for _ in range(5):
        click(browser, "closer")
    assert browser.execute_script(frames) >= before + 5
    assert find(browser, "row 99999")
    assert text_of(browser, "tip").startswith("row 99999")
    sort_by(browser, "name")
    sort_by(browser, "name")
    assert table_rows(browser)[0][0] == "row 99999"
    browser.execute_script("document.getElementById('rows').scrollTop = 30 * 50000")
    time.sleep(0.2)
    settle(browser)
    assert "row 49999" in [row[0] for row in table_rows(browser)]
    assert len(table_rows(browser)) < 40
    write_filter(browser, "name", "row 4242")
    assert text_of(browser, "rows-count") == "11 of 100,000 rows shown"
    assert errors(browser) == []


@pytest.mark.slow
def test_a_sample_of_three_hundred_thousand_rows_keeps_the_labelled(show, make_subject, tmp_path):
    subject = make_subject(n=300_000, labelled=0.002)
    drawn = type(subject).of(
        *(subject.model, subject.table, subject.ready, subject.asked, subject.X),
        note=lambda text: None,
    )
    browser = show(write_report(tmp_path / "sampled.html", drawn))
    assert text_of(browser, "rows-count") == "100,000 rows"
    assert browser.find_element(By.ID, "density").get_attribute("aria-pressed") == "true"
    write_filter(browser, "kind, given", "a")
    labelled = (subject.ready.y == "a").sum()
    assert text_of(browser, "rows-count") == f"{labelled} of 100,000 rows shown"
    assert errors(browser) == []


@pytest.mark.slow
def test_five_thousand_columns_open_and_can_be_searched(show, make_subject, tmp_path):
    subject = make_subject(n=100, names=[f"gene {i}" for i in range(5000)])
    browser = show(write_report(tmp_path / "wide.html", subject))
    box = browser.find_element(By.ID, "colour-name")
    box.click()
    box.send_keys("gene 4999", Keys.ENTER)
    settle(browser)
    assert text_of(browser, "legend-title") == "gene 4999"
    assert browser.execute_script("return document.querySelectorAll('*').length") < 3000
    assert find(browser, "row 3")
    assert errors(browser) == []


def is_hidden(browser, identity):
    return browser.execute_script(
        "return document.getElementById(arguments[0]).offsetParent === null", identity
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_the_plane_shows_the_layout_or_the_axes(show, make_subject, width):
    browser = show("laid out", width=width)
    assert is_hidden(browser, "across")
    assert is_hidden(browser, "arrows")
    layout, place = picture(browser), find(browser, "row 3")
    click(browser, "ellipses")
    assert "as this layout would place it" in text_of(browser, "status")
    click(browser, "axes")
    assert not is_hidden(browser, "across")
    assert picture(browser) != layout
    assert find(browser, "row 3") != place
    click(browser, "neighbours")
    click(browser, "ellipses")
    assert find(browser, "row 3") == pytest.approx(place, abs=1)
    assert errors(browser) == []


def test_the_places_in_the_layout_are_columns_of_the_rows(show, saved):
    browser = show("laid out")
    with saved("save-rows").open(encoding="utf-8") as file:
        names = next(csv.reader(file))
    assert names.count("layout 1") == names.count("layout 2") == 1
    assert errors(browser) == []


def test_a_page_without_a_layout_has_no_choice_of_planes(show):
    assert is_hidden(show("plain"), "planes")

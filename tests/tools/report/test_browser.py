"""The report in a real browser: no request, nothing injected, all controls work."""

import shutil
import time

import numpy as np
import pytest

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from gnomon.tools.report.page import write_report

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="chromium and chromedriver are not here"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(make_subject, hostile_subject, hostile, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "plain": write_report(folder / "plain.html", make_subject()),
        "hostile": write_report(folder / "hostile.html", hostile_subject, notes=hostile),
    }


@pytest.fixture
def show(browser, pages):
    def open_page(name, *, width=1280, height=900, scheme="light"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get_log("browser")
        browser.get_log("performance")
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
    assert {"63,144,218", "255,169,14", "189,31,1"} <= set(colours)


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


def test_scrolling_zooms_and_dragging_moves(show):
    browser = show("plain")
    canvas = browser.find_element(By.ID, "canvas")
    first = picture(browser)
    browser.execute_script(
        "const c = arguments[0], b = c.getBoundingClientRect();"
        "c.dispatchEvent(new WheelEvent('wheel', {deltaY: -300, clientX: b.left + 300,"
        " clientY: b.top + 200, cancelable: true}))",
        canvas,
    )
    settle(browser)
    second = picture(browser)
    ActionChains(browser, duration=0).drag_and_drop_by_offset(canvas, 60, 40).perform()
    settle(browser)
    assert len({first, second, picture(browser)}) == 3


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


def test_it_prints_in_light_colours(show):
    browser = show("plain", scheme="dark")
    assert len(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000
    assert browser.execute_script("return document.documentElement.dataset.theme") is None
    assert errors(browser) == []


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
    assert errors(browser) == []

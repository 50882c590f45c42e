"""Milliseconds that the labelling page takes for a frame, and for a label to be kept.

    python benchmarks/label_page.py

In a real browser without a graphics card (chromium and chromedriver): the map is dragged, shaded
by density or not, and moves to its new place after a label. Times of frames are those of the
processor in the thread that draws, so that other work on the machine does not count. What a page
does once with a new map, before it moves, is a column of its own; the time of a label is from the
request to the answer, with the disk in between.
"""

import http.client
import json
import shutil
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from gnomon import label

import measure

SIZES = (2_000, 20_000, 100_000)
LABELS, MOVES = 40, 5
# Drags the map by three pixels in each of sixty frames.
DRAG = """
const done = arguments[0], canvas = document.getElementById("canvas");
const box = canvas.getBoundingClientRect();
const send = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, { clientX: box.left + x,
  clientY: box.top + 300, pointerId: 1, isPrimary: true, pointerType: "mouse", button: 0 }));
let frame = 0;
send("pointerdown", 300);
const step = () => {
  send("pointermove", 300 + 3 * (frame % 2));
  if (++frame < 60) requestAnimationFrame(step); else { send("pointerup", 300); done(); }
};
requestAnimationFrame(step);
"""
# Waits until something that the page says of its map is no longer what it was.
CHANGED = """
const [name, before, done] = arguments, canvas = document.getElementById("canvas");
const wait = () => (said(name) !== before ? done() : requestAnimationFrame(wait));
const said = (name) => canvas.dataset[name] || "";
wait();
"""
SAID = "return document.getElementById('canvas').dataset[arguments[0]] || ''"


def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_window_size(1400, 1000)
    driver.set_script_timeout(120)
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    return driver


def cost(driver, act):
    """Milliseconds of the processor for a frame while something is done."""
    before = counters(driver)
    act()
    after = counters(driver)
    return 1000 * (after[0] - before[0]) / max(1, after[1] - before[1])


def counters(driver):
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    seconds = next(m["value"] for m in metrics if m["name"] == "TaskDuration")
    return seconds, int(
        driver.execute_script("return document.getElementById('canvas').dataset.frames")
    )


def moves(driver, url, y):
    """Milliseconds for a new map to be taken in, and for a frame while it moves to its place."""
    once = moving = frames = 0
    for row in range(70, 70 + MOVES):
        version, moved = (driver.execute_script(SAID, name) for name in ("version", "moves"))
        start = counters(driver)
        give(url, row, str(y[row]))
        driver.execute_async_script(CHANGED, "version", version)
        begun = counters(driver)
        driver.execute_async_script(CHANGED, "moves", moved)
        end = counters(driver)
        once += begun[0] - start[0]
        moving, frames = moving + end[0] - begun[0], frames + end[1] - begun[1]
        time.sleep(2)
    return 1000 * once / MOVES, 1000 * moving / max(1, frames)


def give(url, row, name):
    place = urlsplit(url)
    body = json.dumps({"do": "label", "rows": [row], "name": name})
    headers = {"Content-Type": "application/json", "Origin": f"http://{place.netloc}"}
    connection = http.client.HTTPConnection(place.hostname, place.port)
    connection.request("POST", f"{place.path}act", body, headers)
    answer = connection.getresponse().read()
    connection.close()
    return answer


def measure_page(driver, n, folder):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, n)
    X = rng.normal(size=(n, 20)) + 3 * rng.normal(size=(6, 20))[y]
    some = np.where(np.arange(n) < 60, y, -1)
    with label(X, some, out=folder / str(n), open_browser=False) as page:
        driver.get(page.url)
        time.sleep(3)
        pressed = "return document.getElementById('density').ariaPressed"
        if driver.execute_script(pressed) == "true":
            driver.find_element("id", "density").click()
        points = cost(driver, lambda: driver.execute_async_script(DRAG))
        driver.find_element("id", "density").click()
        density = cost(driver, lambda: driver.execute_async_script(DRAG))
        driver.find_element("id", "density").click()
        once, moving = moves(driver, page.url, y)
        seconds = []
        for row in range(100, 100 + LABELS):
            start = time.perf_counter()
            give(page.url, row, str(y[row]))
            seconds.append(time.perf_counter() - start)
            time.sleep(0.05)
        driver.get("about:blank")
    kept = 1000 * np.median(seconds)
    return [f"{n:,}", *(f"{value:.1f}" for value in (points, density, moving, once, kept))]


def main():
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print("skipped: chromium and chromedriver are not here")
        return
    driver = browser()
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure_page(driver, n, Path(folder)) for n in SIZES]
    driver.quit()
    measure.write(
        "label_page",
        "The labelling page: milliseconds for a frame, and for a label to be kept",
        [
            *("rows", "dragged", "dragged, density", "moving after a label"),
            *("new map, once", "label kept (median)"),
        ],
        rows,
        [
            "A screen shows a new frame every 16.7 ms. Frames: processor time of the thread that "
            "draws, scripts, layout and all; the last column: request to answer, median of "
            f"{LABELS}, with other work on the machine."
        ],
    )


if __name__ == "__main__":
    main()

"""Draw the pictures of the page on labelling: python docs/label_pictures.py.

A walk in a real browser, with chromium and chromedriver: handwritten digits without a label, given
their true classes one by one by the keys, and one slip on the way.
"""

import io
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from sklearn.datasets import load_digits

import gnomon

STATIC = Path(__file__).parent / "_static"
# Keys give classes in this order, so that the key is the digit.
DIGITS = "1234567890"
# Colours in a saved picture: enough for a page, and a third of the bytes.
COLOURS = 256


# Which of the last labels are wrong, to be found again.
SLIPS = (30,)


def browser():
    """A browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )


def size(driver, width, height, scheme="light"):
    """Make the page as wide, high and light as asked."""
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def shot(driver, name):
    """Save what the page shows."""
    time.sleep(1.5)
    image = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    # By coverage: of the colours of classes few points are, and each of them counts.
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE)
    few.save(STATIC / f"label_{name}.png", optimize=True)


def row(driver):
    """The row on the card, once it is all there."""
    both = "const d = document.getElementById('card').dataset; return [d.row, d.shown]"
    for _ in range(400):
        own, shown = driver.execute_script(both)
        if own and own == shown:
            return int(own)
        time.sleep(0.02)
    raise RuntimeError("the card stays empty")


def give(driver, truth):
    """Give the row on the card its class, and wait until the map has learnt from it."""
    version = "return Number(document.getElementById('canvas').dataset.version)"
    before, own = driver.execute_script(version), row(driver)
    press(driver, truth[own])
    for _ in range(400):
        if driver.execute_script(version) > before:
            return
        time.sleep(0.02)
    raise RuntimeError("the map stays as it was")


def press(driver, keys):
    """Press keys."""
    ActionChains(driver).send_keys(keys).perform()


def write_images(folder, images):
    """The digits as files, large enough to look at; their names."""
    for i, pixels in enumerate(images):
        grey = Image.fromarray((255 - pixels * 15.9).astype(np.uint8))
        grey.resize((128, 128), Image.Resampling.BICUBIC).save(folder / f"{i}.png")
    return [f"{i}.png" for i in range(len(images))]


def walk(driver, page, truth):
    """The walk: a start, the first labels, a map that is there, a slip, a phone."""
    size(driver, 1280, 900)
    driver.get(page.url)
    shot(driver, "start")
    for _ in range(25):
        give(driver, truth)
    shot(driver, "first")
    for k in range(75):
        given = list(truth)
        if k in SLIPS:
            given[row(driver)] = "1" if truth[row(driver)] != "1" else "0"
        give(driver, given)
    time.sleep(20)
    driver.execute_script("document.getElementById('progress').scrollIntoView()")
    shot(driver, "progress")
    driver.execute_script("scrollTo(0, 0)")
    press(driver, "r")
    size(driver, 1280, 900, "dark")
    shot(driver, "slip")
    press(driver, Keys.ESCAPE)
    size(driver, 390, 844)
    shot(driver, "phone")


def main():
    """Draw all pictures."""
    digits = load_digits()
    with tempfile.TemporaryDirectory() as name:
        folder, driver = Path(name), browser()
        truth = [str(y) for y in digits.target]
        shown = {"images": write_images(folder, digits.images), "image_folder": folder}
        ids = [f"digit {i}" for i in range(len(truth))]
        options = {"classes": list(DIGITS), "ids": ids, "out": folder / "out"}
        with gnomon.label(digits.data / 4, **options, **shown, open_browser=False) as page:
            walk(driver, page, truth)
            found, model = page.labels, gnomon.load(page.export()[1]).model
        driver.quit()
    right = model.predict(digits.data / 4)[found < 0].astype(int) == digits.target[found < 0]
    print(f"{sum(found >= 0)} labels, {right.mean():.1%} of the others found", file=sys.stderr)


if __name__ == "__main__":
    main()

import shutil

import pytest


@pytest.fixture
def read(tmp_path):
    """A table of one column, or of several, and its notes."""

    def opened(columns, separator=",", **options):
        columns = columns if isinstance(columns, dict) else {"a": columns}
        rows = zip(*columns.values(), strict=True)
        quoted = [[f'"{cell}"' if separator in cell else cell for cell in row] for row in rows]
        lines = [separator.join([*columns, "end"]), *(separator.join([*q, "z"]) for q in quoted)]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        from gnomon.tools.tables import open_table

        notes = []
        return open_table(tmp_path / "t.csv", note=notes.append, **options), notes

    return opened


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window, which keeps what its console and its network say."""
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (program and driver):
        pytest.skip("chromium and chromedriver are not here")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="session")
def screen(browser):
    """Make the browser's page as wide, high and light as asked, its logs empty."""

    def be(*, width, height, scheme, touch=False):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        points = {"enabled": touch, "maxTouchPoints": 2}
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", points)
        browser.get("about:blank")
        for log in ("browser", "performance"):
            browser.get_log(log)

    return be

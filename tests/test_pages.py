"""Every built page in a browser: nothing is cut, pictures load, links lead somewhere.

`make docs` builds the pages, `make test-docs` runs this. A page is loaded once and looked at in
three widths, light and dark.
"""

import functools
import re
import shutil
import threading
from collections import Counter
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote_plus, unquote, urldefrag, urljoin, urlsplit

import pytest

BUILT = Path(__file__).parent.parent / "docs" / "_build" / "html"
# A laptop, a desk, a phone.
WIDTHS = (1280, 1600, 390)
pytestmark = [pytest.mark.pages, pytest.mark.filterwarnings("ignore::ResourceWarning")]

# What is wider than the window, or than the box that would have to show it. Tables and
# what a program printed may scroll in a box of their own; equations and code are seen whole.
TOO_WIDE = """
const width = document.documentElement.clientWidth, found = [];
const scrolls = e => { for (; e && e.tagName !== 'ARTICLE'; e = e.parentElement) {
    const x = getComputedStyle(e).overflowX;
    if (x === 'auto' || x === 'scroll' || x === 'hidden') return true; } return false; };
if (document.documentElement.scrollWidth > width + 1) found.push('page ' +
    document.documentElement.scrollWidth);
for (const e of document.querySelectorAll('article *')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !scrolls(e)) found.push(e.tagName + '.' +
        e.className + ' to ' + Math.round(box.right));
}
for (const e of document.querySelectorAll('article mjx-container[display="true"]')) {
    if (e.clientWidth && e.scrollWidth > e.clientWidth + 2)
        found.push('equation ' + e.scrollWidth + ' in ' + e.clientWidth);
}
for (const e of document.querySelectorAll('article div.highlight pre')) {
    const printed = e.closest('.output, .cell_output, .sphx-glr-script-out, .highlight-none');
    if (!printed && e.scrollWidth > e.clientWidth + 2)
        found.push('code ' + e.scrollWidth + ' in ' + e.clientWidth);
}
return found.slice(0, 5);
"""
BROKEN = """
return [...document.images].filter(i => i.loading !== 'lazy' && i.complete && !i.naturalWidth)
    .map(i => i.src);
"""
READY = """
const done = arguments[0], start = Date.now();
const math = document.querySelector('.math');
(function look() {
    const typeset = !math || document.querySelector('mjx-container');
    const over = Date.now() - start > 15000;
    if ((document.readyState === 'complete' && typeset) || over) done(!!typeset);
    else setTimeout(look, 50);
})();
"""
# Two frames, in which equations are fitted to a new width.
SETTLED = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]));"


@pytest.fixture(scope="module")
def address():
    """The pages as a server has them."""
    if not (BUILT / "index.html").exists():
        pytest.skip("the pages are not built: make docs")
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *words: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(quiet, directory=BUILT))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    options = webdriver.ChromeOptions()
    if program:
        options.binary_location = program
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    service = webdriver.ChromeService(driver) if driver else None
    running = webdriver.Chrome(options=options, service=service)
    yield running
    running.quit()


def pages():
    """Pages of the build, without those that only list other files."""
    if not BUILT.exists():
        return []
    names = [str(path.relative_to(BUILT)) for path in sorted(BUILT.rglob("*.html"))]
    return [name for name in names if not re.search(r"_static|genindex|search\.html|py-mod", name)]


def set_width(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.mark.parametrize("page", pages())
def test_nothing_is_cut_at_any_width_light_or_dark(page, address, browser):
    set_width(browser, WIDTHS[0])
    browser.get(address + page)
    assert browser.execute_async_script(READY), "formulas were not typeset"
    for width in WIDTHS:
        set_width(browser, width)
        browser.execute_async_script(SETTLED)
        for theme in ("light", "dark"):
            browser.execute_script(f"document.documentElement.dataset.theme = '{theme}'")
            assert browser.execute_script(TOO_WIDE) == [], (width, theme)
    assert browser.execute_script(BROKEN) == []


def test_every_link_inside_the_pages_leads_somewhere():
    wrong = []
    anchors = {name: set(re.findall(r'\bid="([^"]+)"', read(name))) for name in pages()}
    for name in pages():
        for target in set(re.findall(r'(?:href|src)="([^"]+)"', read(name))):
            if urlsplit(target).scheme or target.startswith(("//", "#")):
                continue
            place, anchor = urldefrag(urljoin(name, unquote(target)))
            path = place.partition("?")[0]
            if not (BUILT / path).exists():
                wrong.append((name, target))
            elif anchor and path in anchors and unquote(anchor) not in anchors[path]:
                wrong.append((name, target))
    assert wrong == []


@functools.cache
def read(name):
    return (BUILT / name).read_text(encoding="utf-8")


def test_no_markup_is_left_in_the_text():
    """As a formula that a bar cut in a table, or a directive on a page of the other kind."""
    left = re.compile(
        r"\$\\|\]\(|\*\*\w[^*\n]*\*\*|`|\\[a-z]+\{|^\.\. \w+::|\{\{|:(?:class|func|meth):", re.M
    )
    assert {name: found for name in pages() if (found := left.findall(words_of(name)))} == {}


def words_of(name):
    """The text of a page without code and formulas."""
    article = read(name).partition("<article")[2].partition("</article>")[0]
    bare = re.sub(r"<(script|style|pre|code)\b.*?</\1>", " ", article, flags=re.S)
    bare = re.sub(r'<(span|div) class="[^"]*math[^"]*".*?</\1>', " ", bare, flags=re.S)
    return unescape(re.sub("<[^>]+>", "", bare))


def test_pages_ask_nothing_of_the_network():
    outside = Counter()
    for name in pages():
        found = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', read(name))
        outside.update(url for url in found if "canonical" not in url)
    assert not outside


# What somebody types, and the page that has to be among what is found.
SEARCHES = {
    "strength of supervision": "guides/strength.html",
    "missing values": "guides/missing_values.html",
    "onnx": "guides/other_tools.html",
    "impute": "api/generated/gnomon.PPCA.html",
    "chunks": "gallery/labels/plot_dcagm_chunks.html",
}
FOUND = """
const done = arguments[0], start = Date.now();
(function look() {
    const links = [...document.querySelectorAll('#search-results li a')].map(a => a.href);
    const over = document.querySelector('#search-results .search-summary')
        ?.textContent.match(/finished|found/i);
    if ((over && links.length) || Date.now() - start > 10000) done(links);
    else setTimeout(look, 100);
})();
"""


@pytest.mark.parametrize("words", SEARCHES)
def test_search_finds_the_page_without_a_network_or_a_server(words, browser):
    set_width(browser, 1280)
    home = BUILT.as_uri() + "/"
    browser.get(f"{home}search.html?q={quote_plus(words)}")
    found = [urldefrag(link)[0].partition("?")[0] for link in browser.execute_async_script(FOUND)]
    assert home + SEARCHES[words] in found
    assert all((BUILT / unquote(link.removeprefix(home))).exists() for link in found)


def test_pages_open_from_the_disk(browser):
    """Without a server, as somebody would who was sent the folder."""
    browser.get((BUILT / "models" / "ppca.html").as_uri())
    assert browser.execute_async_script(READY)

"""The page in a real browser, served with its policy: at a desk, on a phone, in the dark, on paper, still.

Pictures of it go to the folder that CUPEL_TEST_PICTURES names, else to the test's own.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cupel_audits.report import AuditReport
from cupel_reports import page, policy
from support.data.sample_pages import HOSTILE, RUNS, forms, large, result, table
from support.service.chromium import DESKTOP, PHONE, Browser, browsing

LONG = "CAM(of=nDCG@10,aspects=[relevance,readability,credibility])"
PAGES: dict[str, Callable[[], str]] = {
    "hostile": partial(lambda: page(result(forms(), HOSTILE))),
    "plain": partial(lambda: page(result(forms(RUNS)))),
    "names": partial(lambda: page(result(AuditReport((), {}, (table("t", "measure tau", [(LONG, 0.5)]),))))),
    "many": partial(lambda: page(result(large(60, 3), [f"run-{i}" for i in range(60)]))),
}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Serves PAGES by name, each with its policy; under /strict with one that allows nothing."""
    made: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/").removeprefix("strict/")
            if name in PAGES and name not in made:
                made[name] = PAGES[name]()
            text = made.get(name, "")
            self.send_response(200 if text else 204)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            strict = self.path.startswith("/strict/")
            self.send_header("Content-Security-Policy", "default-src 'none'" if strict else policy(text))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(scope="module")
def without_scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser"), javascript=False) as made:
        yield made


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("CUPEL_TEST_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def enliven(browser: Browser) -> int:
    """Have every panel drawn by scripts, as somebody does who scrolls through; how many there are."""
    panels = int(browser.ask("document.querySelectorAll('.panel').length"))
    for place in range(panels):
        panel = f"document.querySelectorAll('.panel')[{place}]"
        browser.ask(f"{panel}.scrollIntoView()")
        browser.until(f"{panel}.classList.contains('alive')")
    browser.ask("scrollTo(0, 0)")
    return panels


def seen(browser: Browser, selector: str) -> int:
    """How many elements take up room."""
    return int(
        browser.ask(
            f"[...document.querySelectorAll('{selector}')].filter(e => e.getClientRects().length).length"
        )
    )


def fits(browser: Browser) -> bool:
    return bool(browser.ask("document.scrollingElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_comes_alive_under_its_policy_without_a_complaint(
    browser: Browser, site: str, pictures: Path, name: str, size: tuple[int, int]
) -> None:
    browser.complaints()
    browser.open(f"{site}/{name}", size)
    panels = enliven(browser)
    browser.picture(pictures / f"{name}-{size[0]}.png")
    assert fits(browser)
    assert seen(browser, ".live > svg, .live > div > svg") == panels
    assert seen(browser, ".still svg") == 0
    assert not browser.complaints()


def test_a_long_name_in_the_first_column_leaves_room_for_the_others(browser: Browser, site: str) -> None:
    browser.open(f"{site}/names", PHONE)
    beside = "document.querySelector('tbody td:nth-child(2)').getBoundingClientRect().right"
    assert browser.ask(beside) < PHONE[0]


def test_a_page_in_the_dark_is_dark(browser: Browser, site: str, pictures: Path) -> None:
    browser.open(f"{site}/hostile", dark=True)
    enliven(browser)
    browser.picture(pictures / "dark.png")
    dark = [
        int(part)
        for part in re.findall(r"\d+", browser.ask("getComputedStyle(document.body).backgroundColor"))
    ]
    assert max(dark) < 60
    ink = browser.ask("getComputedStyle(document.querySelector('.live text')).fill")
    assert min(int(part) for part in re.findall(r"\d+", ink)) > 120


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_without_scripts_the_same_plots_are_there(
    without_scripts: Browser, site: str, pictures: Path, size: tuple[int, int]
) -> None:
    without_scripts.open(f"{site}/hostile", size)
    without_scripts.picture(pictures / f"without-scripts-{size[0]}.png")
    assert fits(without_scripts)
    assert seen(without_scripts, ".still svg") == 11
    assert seen(without_scripts, ".live") == 0
    assert not without_scripts.complaints()


@pytest.mark.parametrize("scripts", [True, False], ids=["with-scripts", "without-scripts"])
def test_on_paper_everything_is_open_and_still(
    browser: Browser, without_scripts: Browser, site: str, pictures: Path, scripts: bool
) -> None:
    one = browser if scripts else without_scripts
    one.open(f"{site}/many")
    if scripts:
        enliven(one)
    one.printed(pictures / f"paper-{scripts}.pdf")
    one.media("print")
    assert seen(one, ".still svg") == 4
    assert seen(one, ".live, .tip, .screen") == 0
    assert one.ask("document.querySelector('.long td').checkVisibility({contentVisibilityAuto: true})")
    assert seen(one, ".long tbody tr") == 100
    sheet = (pictures / f"paper-{scripts}.pdf").read_bytes()
    assert 3 < len(re.findall(rb"/Type\s*/Page\b", sheet)) < 20


def test_what_is_under_the_mouse_is_told_and_stands_out(browser: Browser, site: str) -> None:
    browser.open(f"{site}/plain")
    enliven(browser)
    browser.ask("document.querySelector('#plot-4').scrollIntoView({behavior: 'instant'})")
    browser.until("scrollY > 100")
    point = "[...document.querySelectorAll('#plot-4 .live path[opacity=\"0\"]')][0].getBoundingClientRect()"
    box = browser.ask(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({point})")
    for nudge in (0, 1):
        browser.point(box[0] + nudge, box[1])
    browser.until("!document.querySelector('.tip').hidden")
    told = browser.ask("document.querySelector('.tip').innerText")
    assert told.split("\n") == ["the run aster", "the stage a", "the rank 1"]
    others = "[...document.querySelectorAll('#plot-4 .key')].filter(key => key.classList.contains('faint'))"
    assert browser.ask(f"{others}.map(key => key.dataset.series)") == ["birch"]
    browser.press("Escape")
    assert browser.ask("document.querySelector('.tip').hidden")


def test_a_key_of_the_legend_keeps_its_series_in_focus(browser: Browser, site: str) -> None:
    browser.open(f"{site}/plain")
    enliven(browser)
    key = "document.querySelectorAll('#plot-4 .key')[1]"
    browser.ask(f"{key}.focus()")
    browser.press("Enter")
    assert browser.ask(f"{key}.getAttribute('aria-pressed')") == "true"
    paths = "[...document.querySelectorAll('#plot-4 .live path')]"
    faint = f"{paths}.filter(path => path.getAttribute('opacity') === '0.12')"
    browser.until(f"{faint}.length > 0")
    browser.press("Enter")
    browser.until(f"{faint}.length === 0")


def test_a_name_that_is_a_script_does_not_run(browser: Browser, site: str) -> None:
    browser.open(f"{site}/hostile")
    enliven(browser)
    assert browser.ask("document.querySelectorAll('img, b, iframe').length") == 0
    assert browser.ask("performance.getEntriesByType('resource').length") == 0
    told = browser.ask("document.querySelector('#plot-1 .key bdi').textContent")
    assert told == HOSTILE[0]


def test_a_policy_without_its_hashes_would_be_noticed(browser: Browser, site: str) -> None:
    browser.open(f"{site}/strict/plain")
    assert any("Content Security Policy" in one for one in browser.complaints())

"""Tests of pages in a browser: screen sizes, colour schemes, print, scripts, and the content policy.

Screenshots are written to the folder CUPEL_TEST_PICTURES (default: the temporary folder of the test).
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
from support.data.sample_pages import HOSTILE, RUNS, forms, large, plot, result, table
from support.service.chromium import DESKTOP, PHONE, Browser, open_browser

LONG = "CAM(of=nDCG@10,aspects=[relevance,readability,credibility])"
MATRIX = AuditReport(
    verdict=(),
    numbers={},
    tables=(
        table("t", "check measure share", [(f"D{n}", "NLRE", 0.95 if n == 1 else 1.0) for n in range(1, 11)]),
    ),
    plots=(plot("heatmap", "t", "check", "measure", value="share", domain=(0, 1)),),
)
"""A heat map with more columns than a phone has space for."""
PAGES: dict[str, Callable[[], str]] = {
    "hostile": partial(lambda: page(result(forms(), HOSTILE))),
    "plain": partial(lambda: page(result(forms(RUNS)))),
    "names": partial(
        lambda: page(
            result(AuditReport(verdict=(), numbers={}, tables=(table("t", "measure tau", [(LONG, 0.5)]),)))
        )
    ),
    "matrix": partial(lambda: page(result(MATRIX))),
    "many": partial(lambda: page(result(large(60, 3), [f"run-{i}" for i in range(60)]))),
}


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Serve PAGES by name, each with its policy.

    Serve the same pages below /strict/ with a policy that allows nothing.
    """
    pages: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.strip("/").removeprefix("strict/")
            if name in PAGES and name not in pages:
                pages[name] = PAGES[name]()
            text = pages.get(name, "")
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
    with open_browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def without_scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("browser"), javascript=False) as started:
        yield started


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("CUPEL_TEST_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def draw_panels(browser: Browser) -> int:
    """Scroll to every panel so that scripts draw it; return the number of panels."""
    panels = int(browser.evaluate("document.querySelectorAll('.panel').length"))
    for place in range(panels):
        panel = f"document.querySelectorAll('.panel')[{place}]"
        browser.evaluate(f"{panel}.scrollIntoView()")
        browser.wait_until(f"{panel}.classList.contains('interactive')")
    browser.evaluate("scrollTo(0, 0)")
    return panels


def count_visible(browser: Browser, selector: str) -> int:
    """Return the number of visible elements."""
    return int(
        browser.evaluate(
            f"[...document.querySelectorAll('{selector}')].filter(e => e.getClientRects().length).length"
        )
    )


def fits_window_width(browser: Browser) -> bool:
    return bool(browser.evaluate("document.scrollingElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_plots_become_interactive_under_the_policy(
    browser: Browser, site: str, pictures: Path, name: str, size: tuple[int, int]
) -> None:
    browser.console_messages()
    browser.open(f"{site}/{name}", size)
    panels = draw_panels(browser)
    browser.save_screenshot(pictures / f"{name}-{size[0]}.png")
    assert fits_window_width(browser)
    assert count_visible(browser, ".chart > svg, .chart > div > svg") == panels
    assert count_visible(browser, ".static svg") == 0
    assert not browser.console_messages()


def test_long_name_in_first_column_keeps_other_columns_visible(browser: Browser, site: str) -> None:
    browser.open(f"{site}/names", PHONE)
    right_edge = "document.querySelector('tbody td:nth-child(2)').getBoundingClientRect().right"
    assert browser.evaluate(right_edge) < PHONE[0]


def test_dark_scheme_has_dark_background_and_light_text(browser: Browser, site: str, pictures: Path) -> None:
    browser.open(f"{site}/hostile", dark=True)
    draw_panels(browser)
    browser.save_screenshot(pictures / "dark.png")
    dark = [
        int(part)
        for part in re.findall(r"\d+", browser.evaluate("getComputedStyle(document.body).backgroundColor"))
    ]
    assert max(dark) < 60
    ink = browser.evaluate("getComputedStyle(document.querySelector('.chart text')).fill")
    assert min(int(part) for part in re.findall(r"\d+", ink)) > 120


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_static_plots_are_shown_without_scripts(
    without_scripts: Browser, site: str, pictures: Path, size: tuple[int, int]
) -> None:
    without_scripts.open(f"{site}/hostile", size)
    without_scripts.save_screenshot(pictures / f"without-scripts-{size[0]}.png")
    assert fits_window_width(without_scripts)
    assert count_visible(without_scripts, ".static svg") == 12
    assert count_visible(without_scripts, ".chart") == 0
    assert not without_scripts.console_messages()


@pytest.mark.parametrize("scripts", [True, False], ids=["with-scripts", "without-scripts"])
def test_print_expands_details_and_shows_static_plots(
    browser: Browser, without_scripts: Browser, site: str, pictures: Path, scripts: bool
) -> None:
    chosen = browser if scripts else without_scripts
    chosen.open(f"{site}/many")
    if scripts:
        draw_panels(chosen)
    chosen.save_pdf(pictures / f"paper-{scripts}.pdf")
    chosen.media("print")
    assert count_visible(chosen, ".static svg") == 4
    assert count_visible(chosen, ".chart, .tip, .screen") == 0
    assert chosen.evaluate(
        "document.querySelector('.long td').checkVisibility({contentVisibilityAuto: true})"
    )
    assert count_visible(chosen, ".long tbody tr") == 100
    sheet = (pictures / f"paper-{scripts}.pdf").read_bytes()
    assert 3 < len(re.findall(rb"/Type\s*/Page\b", sheet)) < 20


def test_pointer_shows_tooltip_and_highlights_series(browser: Browser, site: str) -> None:
    browser.open(f"{site}/plain")
    draw_panels(browser)
    browser.evaluate("document.querySelector('#plot-4').scrollIntoView({behavior: 'instant'})")
    browser.wait_until("scrollY > 100")
    point = "[...document.querySelectorAll('#plot-4 .chart path[opacity=\"0\"]')][0].getBoundingClientRect()"
    box = browser.evaluate(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({point})")
    for nudge in (0, 1):
        browser.move_mouse(box[0] + nudge, box[1])
    browser.wait_until("!document.querySelector('.tip').hidden")
    tooltip = browser.evaluate("document.querySelector('.tip').innerText")
    assert tooltip.split("\n") == ["the run aster", "the stage a", "the rank 1"]
    others = "[...document.querySelectorAll('#plot-4 .key')].filter(key => key.classList.contains('faint'))"
    assert browser.evaluate(f"{others}.map(key => key.dataset.series)") == ["birch"]
    browser.press("Escape")
    assert browser.evaluate("document.querySelector('.tip').hidden")


def test_legend_key_toggles_focus_of_its_series(browser: Browser, site: str) -> None:
    browser.open(f"{site}/plain")
    draw_panels(browser)
    key = "document.querySelectorAll('#plot-4 .key')[1]"
    browser.evaluate(f"{key}.focus()")
    browser.press("Enter")
    assert browser.evaluate(f"{key}.getAttribute('aria-pressed')") == "true"
    paths = "[...document.querySelectorAll('#plot-4 .chart path')]"
    faint = f"{paths}.filter(path => path.getAttribute('opacity') === '0.12')"
    browser.wait_until(f"{faint}.length > 0")
    browser.press("Enter")
    browser.wait_until(f"{faint}.length === 0")


def test_live_charts_have_one_text_alternative(browser: Browser, site: str) -> None:
    browser.open(f"{site}/plain")
    panels = draw_panels(browser)
    charts = "[...document.querySelectorAll('.chart')]"
    assert browser.evaluate(f"{charts}.filter(chart => chart.getAttribute('aria-label')).length") == panels
    hidden = f"{charts}.map(chart => chart.querySelector('svg').getAttribute('aria-hidden'))"
    assert browser.evaluate(hidden) == ["true"] * panels


def test_heatmap_on_a_phone_scrolls_and_keeps_its_numbers(browser: Browser, site: str) -> None:
    browser.open(f"{site}/matrix", PHONE)
    draw_panels(browser)
    assert fits_window_width(browser)
    assert browser.evaluate("document.querySelector('.wide').tabIndex") == 0
    numbers = "[...document.querySelectorAll('.chart text')].filter(e => e.textContent === '0.95')"
    assert browser.evaluate(f"{numbers}.map(e => e.getAttribute('opacity'))") in ([None], ["1"])


def test_name_with_script_does_not_run(browser: Browser, site: str) -> None:
    browser.open(f"{site}/hostile")
    draw_panels(browser)
    assert browser.evaluate("document.querySelectorAll('img, b, iframe').length") == 0
    assert browser.evaluate("performance.getEntriesByType('resource').length") == 0
    name = browser.evaluate("document.querySelector('#plot-1 .key bdi').textContent")
    assert name == HOSTILE[0]


def test_policy_without_hashes_is_reported_by_the_browser(browser: Browser, site: str) -> None:
    browser.open(f"{site}/strict/plain")
    assert any("Content Security Policy" in complaint for complaint in browser.console_messages())

"""The page in a real browser: Chromium, headless.

Set TKMEANS_SCREENSHOTS to a folder to keep the screenshots and look at them.
"""

import base64
import itertools

import numpy as np
import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.support.ui import Select
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.preprocessing import RobustScaler
from support.chromium_browser import Chromium

from tkmeans import TKMeans, write_report
from tkmeans.datasets import make_contaminated

HTML = "<img src=x onerror='window.hacked=1'><b>bold</b>"
SPOILT = 77  # the flower with a typing error


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Chromium(tmp_path_factory.mktemp("screenshots"))
    yield started
    started.quit()


@pytest.fixture(scope="module")
def flowers(tmp_path_factory):
    """Irises with a typing error, gaps and names, scaled; the name of a column and of a row are HTML."""
    X = load_iris().data.copy()
    X[SPOILT, 1] = 310
    X[[3, 90], [0, 3]] = np.nan
    names = [f"flower {i}" for i in range(150)]
    names[SPOILT] = HTML
    scaler = RobustScaler().fit(X)
    model = TKMeans(3, random_state=0).fit(scaler.transform(X))
    path = tmp_path_factory.mktemp("flowers") / "flowers.html"
    columns = ["sepal length", HTML, "petal length", "petal width"]
    return write_report(path, model, X, scaler=scaler, row_names=names, feature_names=columns, title="Irises")


@pytest.fixture(scope="module")
def strays(tmp_path_factory):
    """Two columns, four clusters, 15 outliers far away: the file, the rows and the verdict."""
    X, y = make_contaminated(300, 4, random_state=0)
    model = KMeans(4, n_init=10, random_state=0).fit(X[y >= 0])
    model.outliers = lambda _: y < 0
    path = tmp_path_factory.mktemp("strays") / "strays.html"
    return write_report(path, model, X, feature_names=["x", "y"]), X, y < 0


def zoom(browser):
    browser.settle()
    return float(browser.ask("document.getElementById('canvas').dataset.zoom"))


def window(browser):
    browser.settle()
    return np.array(browser.ask("document.getElementById('canvas').dataset.window").split(), dtype=float)


def place(browser, x, y):
    """Where a point of the data is on the canvas, from its middle: what ActionChains counts from."""
    left, right, bottom, top = window(browser)
    x0, y0, w, h = map(float, browser.ask("document.getElementById('canvas').dataset.area").split())
    across = x0 + (x - left) / (right - left) * w
    down = y0 + (top - y) / (top - bottom) * h
    size = browser.one("#canvas").size
    return round(across - size["width"] / 2), round(down - size["height"] / 2)


def point_at(browser, x, y):
    canvas = browser.one("#canvas")
    browser.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    ActionChains(browser.driver).move_to_element_with_offset(canvas, *place(browser, x, y)).perform()
    browser.settle()


# ---- opening -------------------------------------------------------------------------


def test_an_open_report_makes_no_network_request(browser, flowers):
    asked = browser.open(flowers).requests()
    assert asked
    assert all(url == flowers.as_uri() or url.startswith("data:") for url in asked)


def test_html_in_the_data_shows_as_text_in_the_report_and_does_not_run(browser, flowers):
    browser.open(flowers)
    assert HTML in browser.texts("#outliers tbody th bdi")
    assert HTML in browser.texts("#across option")
    browser.one("#outliers button.pointer").click()
    browser.settle()
    assert HTML in browser.one("#tip").text
    assert browser.ask("window.hacked === undefined && document.images.length === 0")


def test_an_open_report_draws_its_picture(browser, flowers):
    browser.open(flowers).settle()
    pixels = "context.getImageData(0, 0, canvas.width, canvas.height).data.buffer"
    colors = browser.ask(
        "(() => { const canvas = document.getElementById('canvas'), context = canvas.getContext('2d');"
        f" return new Set(new Uint32Array({pixels})).size }})()"
    )
    assert colors > 20
    browser.shot("desktop")


@pytest.mark.parametrize("clusters", [1, 3])
@pytest.mark.parametrize("p", [1, 5])
def test_reports_of_few_columns_and_few_clusters_open_without_a_browser_error(browser, tmp_path, p, clusters):
    X, _ = make_contaminated(100, 3, p, outlier_fraction=0, random_state=0)
    model = KMeans(clusters, n_init=1, random_state=0).fit(X)
    browser.open(write_report(tmp_path / "report.html", model, X)).settle()
    assert len(browser.texts("#legend button")) == clusters
    assert browser.one("#axes").is_displayed() == (p > 2)


def test_a_report_of_a_hundred_thousand_rows_opens_and_zooms(browser, tmp_path):
    rng = np.random.default_rng(0)
    centers = 20 * np.eye(6, 8)
    X = centers[np.arange(100_000) % 6] + rng.normal(size=(100_000, 8))
    model = KMeans(6, init=centers, n_init=1, max_iter=1).fit(X)
    path = write_report(tmp_path / "big.html", model, X, row_names=[f"sample {i:06}" for i in range(100_000)])
    assert path.stat().st_size < 5_000_000
    browser.open(path)
    box = window(browser)
    point_at(browser, box[:2].mean(), box[2:].mean())
    for button in ("closer", "farther"):
        browser.one(f"#{button}").click()
    assert zoom(browser) == pytest.approx(1)
    browser.shot("hundred-thousand-rows")


def test_a_report_of_values_with_more_digits_than_a_float_holds_opens(browser, tmp_path):
    X = make_contaminated(60, 2, outlier_fraction=0, random_state=0)[0] * 1e4 + 1.7e18  # nanoseconds since 1970
    model = KMeans(2, n_init=1, random_state=0).fit(X)
    browser.open(write_report(tmp_path / "report.html", model, X)).settle()
    assert zoom(browser) == 1


# ---- pointing ------------------------------------------------------------------------


def test_pointing_at_a_row_of_the_picture_shows_its_name_cluster_and_values(browser, strays):
    path, X, outliers = strays
    browser.open(path)
    core = X[~outliers]
    lonely = np.flatnonzero(~outliers)[np.sort(np.linalg.norm(core[:, None] - core, axis=2), axis=1)[:, 1].argmax()]
    point_at(browser, *X[lonely])
    lines = browser.one("#tip").text.splitlines()
    assert lines[0] == f"row {lonely}"
    assert lines[1].startswith("cluster ")
    assert f"{X[lonely, 0]:.2f}".replace("-", "−") in lines
    browser.shot("pointing")
    point_at(browser, *(window(browser)[[1, 3]] - 1e-3))  # a corner: nobody is there
    assert not browser.one("#tip").is_displayed()


def test_a_click_on_an_outlier_in_the_table_brings_it_into_the_picture(browser, strays):
    path, X, outliers = strays
    browser.open(path)
    before = window(browser)
    farthest = browser.one("#outliers tbody button.pointer")
    number = int(farthest.text.split()[1])
    assert not (before[0] < X[number, 0] < before[1] and before[2] < X[number, 1] < before[3])
    farthest.click()
    left, right, bottom, top = window(browser)
    assert left < X[number, 0] < right
    assert bottom < X[number, 1] < top
    assert browser.one("#tip").text.startswith(f"row {number}\noutlier; nearest to cluster ")
    assert outliers[number]
    browser.shot("outlier")


# ---- zooming and moving --------------------------------------------------------------


def test_the_mouse_wheel_zooms_about_the_pointer_once_the_picture_was_clicked(browser, strays):
    browser.open(strays[0])
    canvas = browser.one("#canvas")
    browser.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    origin = ScrollOrigin.from_element(canvas, 150, -80)
    ActionChains(browser.driver).scroll_from_origin(origin, 0, -100).perform()
    assert zoom(browser) == 1  # so far the page scrolls
    browser.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    before = window(browser)
    canvas.click()
    ActionChains(browser.driver).scroll_from_origin(origin, 0, -100).perform()
    assert zoom(browser) > 1.1
    after = window(browser)
    x0, _, w, _ = map(float, browser.ask("arguments[0].dataset.area", canvas).split())
    across = (canvas.size["width"] / 2 + 150 - x0) / w
    under = [low + across * (high - low) for low, high in (before[:2], after[:2])]
    assert under[0] == pytest.approx(under[1], abs=(before[1] - before[0]) / 300)
    ActionChains(browser.driver).double_click(canvas).perform()
    np.testing.assert_allclose(window(browser), before)


def test_dragging_moves_the_picture_of_the_report(browser, strays):
    browser.open(strays[0])
    before = window(browser)
    ActionChains(browser.driver).drag_and_drop_by_offset(browser.one("#canvas"), 100, 50).perform()
    after = window(browser)
    assert after[0] < before[0]  # the picture follows the pointer to the right and down
    assert after[3] > before[3]
    assert after[1] - after[0] == pytest.approx(before[1] - before[0])


def test_keys_zoom_move_and_reset_the_picture_of_the_report(browser, strays):
    browser.open(strays[0])
    before = window(browser)
    canvas = browser.one("#canvas")
    canvas.send_keys("+")
    assert zoom(browser) == pytest.approx(1.4, abs=0.001)
    zoomed = window(browser)
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert window(browser)[0] > zoomed[0]
    canvas.send_keys("-0")
    np.testing.assert_allclose(window(browser), before)


def test_the_buttons_of_the_report_zoom_and_reset_its_picture(browser, strays):
    browser.open(strays[0])
    browser.one("#closer").click()
    assert zoom(browser) == pytest.approx(1.5, abs=0.001)
    browser.one("#whole").click()
    assert zoom(browser) == 1


def test_two_fingers_zoom_the_picture_on_a_phone(browser, strays):
    browser.open(strays[0], width=390, height=844, phone=True)
    canvas = browser.one("#canvas")
    browser.ask("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    box = browser.ask(
        "(() => { const b = arguments[0].getBoundingClientRect(); return [b.x + b.width / 2, b.y + 200] })()", canvas
    )

    def touch(kind, *gaps):
        fingers = [{"x": box[0] + side * gap, "y": box[1], "id": i} for gap in gaps for i, side in enumerate((-1, 1))]
        browser.command("Input.dispatchTouchEvent", type=kind, touchPoints=fingers)

    touch("touchStart", 40)
    for gap in (60, 80, 100):
        touch("touchMove", gap)
    touch("touchEnd")
    assert zoom(browser) == pytest.approx(100 / 40, rel=0.1)


# ---- choosing and sorting ------------------------------------------------------------


def test_a_heading_of_a_table_sorts_its_column_up_and_down_by_mouse_and_by_keyboard(browser, strays):
    path, X, outliers = strays
    browser.open(path)

    def column(n):
        return browser.texts(f"#outliers tbody tr > :nth-child({n})")

    assert len(column(1)) == outliers.sum()
    heading = next(b for b in browser.driver.find_elements("css selector", "#outliers thead button") if b.text == "x")
    heading.click()
    shown = [f"{x:.2f}".replace("-", "−") for x in np.sort(X[outliers, 0])]
    assert column(5) == shown
    assert browser.one("#outliers th:nth-child(5)").get_attribute("aria-sort") == "ascending"
    heading.send_keys(Keys.ENTER)
    assert column(5) == shown[::-1]
    assert browser.one("#outliers th:nth-child(5)").get_attribute("aria-sort") == "descending"
    assert browser.texts("#outliers th[aria-sort]") == ["x"]


def test_names_of_rows_sort_by_number_not_by_letter(browser, strays):
    browser.open(strays[0])
    browser.one("#outliers thead button").click()
    numbers = [int(name.split()[1]) for name in browser.texts("#outliers tbody th")]
    assert numbers == sorted(numbers)


def test_a_cluster_can_be_hidden_in_the_picture_and_shown_again(browser, strays):
    path, X, outliers = strays
    browser.open(path)
    core = X[~outliers]
    lonely = core[np.sort(np.linalg.norm(core[:, None] - core, axis=2), axis=1)[:, 1].argmax()]
    point_at(browser, *lonely)
    cluster = int(browser.one("#tip").text.splitlines()[1].split()[1])
    button = browser.one(f"#legend button[data-cluster='{cluster}']")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    point_at(browser, *lonely)
    assert not browser.one("#tip").is_displayed()
    button.click()
    point_at(browser, *lonely)
    assert browser.one("#tip").is_displayed()


def test_other_columns_can_be_chosen_for_the_axes_of_the_picture(browser, flowers):
    browser.open(flowers)
    Select(browser.one("#across")).select_by_visible_text("petal length")
    Select(browser.one("#up")).select_by_visible_text("petal width")
    petals = load_iris().data[:, 2:]
    left, right, bottom, top = window(browser)
    assert left < petals[:, 0].min() < petals[:, 0].max() < right
    assert bottom < petals[:, 1].min() < petals[:, 1].max() < top


# ---- other surroundings --------------------------------------------------------------


def test_on_a_phone_the_report_fits_the_width_and_its_buttons_are_large_enough(browser, flowers):
    browser.open(flowers, width=360, height=740, phone=True)
    assert browser.ask("document.documentElement.scrollWidth") <= 360
    heights = browser.ask("[...document.querySelectorAll('.buttons button')].map((b) => b.offsetHeight)")
    assert min(heights) >= 24  # WCAG 2.2, 2.5.8
    ends = browser.ask("[...document.querySelectorAll('nav a')].map((a) => a.getBoundingClientRect().right)")
    assert len(ends) >= 6
    assert max(ends) <= 360  # no section is reached by scrolling sideways only
    browser.shot("phone")


def test_on_a_phone_long_names_and_categories_stay_within_their_card_and_charts_are_readable(browser, tmp_path):
    X, y = make_contaminated(120, 2, n_features=3, random_state=0)
    names = ["customer_lifetime_value_in_euro_before_taxes", "household consumption per person and month", "z" * 70]
    segments = {"segment of the last review": np.where(y > 0, "customers with more than three contracts", "dormant")}
    model = TKMeans(2, random_state=0).fit(X)
    page = write_report(tmp_path / "long.html", model, X, feature_names=names, categories=segments)
    browser.open(page, width=390, height=844, phone=True)
    inside = "[...document.querySelectorAll('.card')].every((card) => card.scrollWidth <= card.clientWidth)"
    assert browser.ask(inside)
    chart = "document.querySelector('.chart')"
    shown = f"{chart}.getBoundingClientRect().width / {chart}.viewBox.baseVal.width"
    assert browser.ask(shown) == pytest.approx(1, abs=0.05)  # so text of 12 pixels is shown with 12 pixels


def test_a_browser_that_prefers_dark_shows_a_dark_report(browser, flowers):
    def brightness():
        red, green, blue = browser.ask(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    browser.open(flowers)
    assert brightness() > 200
    browser.open(flowers, dark=True)
    assert brightness() < 60
    browser.shot("dark")


def test_a_report_prints_with_all_details_open_and_closes_them_afterwards(browser, flowers):
    browser.open(flowers)
    count = "document.querySelectorAll('details:not([open])').length"
    browser.ask(f"addEventListener('beforeprint', () => {{ window.seen = {count} }})")
    folded = browser.ask(count)
    assert browser.print("print").startswith(b"%PDF")
    assert folded > 0
    assert browser.ask("window.seen") == 0
    assert browser.ask(count) == folded


def test_headings_of_the_report_form_an_outline_and_every_control_has_a_name(browser, flowers):
    browser.open(flowers)
    levels = browser.ask("[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
    nameless = browser.ask(
        "[...document.querySelectorAll('button, select, canvas, [role=region], svg[role=img]')].filter((e) =>"
        " !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length)).length"
    )
    assert nameless == 0


def test_screenshots_are_written_as_png_files(browser, flowers):
    browser.open(flowers).shot("kept")
    assert (browser.folder / "kept.png").read_bytes().startswith(base64.b64decode("iVBORw0KGgo="))

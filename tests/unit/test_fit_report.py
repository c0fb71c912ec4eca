"""The report of a fit: a page that opens offline in a real browser, and a file for programs that says the same."""

import html
import re
from dataclasses import replace
from html import escape

import numpy as np
import pandas
import pytest
from support_fit import MACHINE, kernel_rows, message_rows, write_calibration
from support_pages import Elements, text_of, widths_offline

from lepaute.cli.fit_text import verdict_text
from lepaute.cli.main import main
from lepaute.kit.text import percent
from lepaute.measure.archive import Archive
from lepaute.measure.fit import diagnose, models
from lepaute.measure.fit.diagnostics.findings import CHANGES, answer, figures, findings
from lepaute.measure.fit.diagnostics.flag import KINDS, Flag, dependence_flags, factor_flags
from lepaute.measure.fit.observations.factors import FactorTest, LevelEffect
from lepaute.measure.fit.report import page, write_report
from lepaute.measure.fit.variability.dependence import DependenceReport
from lepaute.simulate.platform import load_platform

HOSTILE = '<img src=x onerror="alert(1)">&'


def slower_from_the_middle(frame):
    """Something else ran from the middle of the measurement on: everything takes a quarter longer."""
    late = frame["start_s"] > frame["start_s"].median()
    return frame.assign(duration_s=frame["duration_s"] * np.where(late, 1.25, 1.0))


@pytest.fixture(scope="module")
def diagnosis(tmp_path_factory):
    kernels = slower_from_the_middle(kernel_rows(20, 200, kernels=("dgemm", "dtrsm"), gap_s=5.0))
    path = write_calibration(tmp_path_factory.mktemp("fit") / f"{HOSTILE[1:4]}.zip", kernels=kernels, cpu_model=HOSTILE)
    archive = Archive.open(path)
    return diagnose(archive, models(archive))


@pytest.fixture(scope="module")
def page_file(diagnosis, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(diagnosis, path)
    return path


@pytest.mark.slow
def test_a_change_in_the_middle_is_a_serious_flag_of_the_machine_with_its_time_and_its_size(diagnosis):
    (flag,) = [flag for flag in diagnosis.serious if flag.subject == "machine" and flag.kind == "step"]
    assert flag.statistic == pytest.approx(0.25, abs=0.04)
    assert "in 2 of the 2 kernels" in flag.sentence
    assert "longer from 1 min 40 s on" in flag.sentence  # of 3 min 20 s


def test_every_subject_has_all_checks_each_with_a_sentence(diagnosis):
    names = [subject.name for subject in diagnosis.subjects]
    assert names[:2] == ["kernel dgemm", "kernel dtrsm"] or names[:2] == ["kernel dtrsm", "kernel dgemm"]
    assert {"message pingpong", "message isend", "message recv", "message exchange"} <= set(names)
    for subject in diagnosis.subjects:
        kinds = {check.kind for check in subject.checks}
        assert {"size", "spread", "autocorrelation", "drift", "step", "cores", "outliers", "goodness"} <= kinds
        assert all(check.fine or check.wrong for check in subject.checks)


def test_links_lead_somewhere_names_are_no_markup_pictures_have_a_text_and_nothing_is_loaded(page_file):
    text = page_file.read_text()
    page = Elements(text)
    assert len(page.ids) == len(set(page.ids))
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert "img" not in page.tags
    assert "script" not in page.tags
    assert "&lt;img src=x" in text  # the processor's name, as text
    assert len(page.images) > 20
    assert all(image.get("role") == "img" and len(image.get("aria-label") or "") > 20 for image in page.images)
    assert not re.search(r'(?:src|href|url)\s*[=(]\s*["\']?(?:https?:|//)', text)
    assert len(text) < 2_000_000


@pytest.mark.parametrize("width", [1200, 400])
def test_the_page_opens_offline_in_a_browser_without_a_complaint_and_fits_its_width(browser, page_file, width):
    boxes = widths_offline(browser, page_file, width, "#evidence svg")
    # Figures are seen, of a readable size, and texts in them are no smaller than 9 pixels.
    assert min(boxes) >= 250
    assert min(boxes) / 360 * 11 >= 9


def test_a_link_of_a_finding_shows_its_subject(browser, page_file):
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    tab = context.new_page()
    tab.goto(page_file.as_uri())
    link = tab.locator("#answer .pair a").first
    assert not tab.locator(link.get_attribute("href")).is_visible()  # folded
    target = link.get_attribute("href")
    link.click()
    assert tab.url.endswith(target)
    assert tab.locator(target).is_visible()
    assert -5 <= tab.evaluate(f"document.querySelector('{target}').getBoundingClientRect().top") < 900
    context.close()


@pytest.mark.parametrize("width", [1000, 1600])
def test_the_answer_is_on_the_first_screen_and_all_beyond_the_evidence_is_folded(browser, page_file, width):
    context = browser.new_context(viewport={"width": width, "height": 800}, offline=True)
    tab = context.new_page()
    tab.goto(page_file.as_uri())
    for part in (".verdict", ".figures", ".pair", "nav"):
        box = tab.locator(f"#answer {part}").bounding_box()
        assert box["height"] > 0
        assert box["y"] + box["height"] <= 800
    assert tab.locator(".figures dt").count() == 3
    assert tab.locator("details").count() > 10
    assert tab.locator("details[open]").count() == 0
    # Answer, findings and evidence: a few screens, where all pictures of all subjects would be dozens.
    assert tab.evaluate("document.documentElement.scrollHeight") <= 4 * 800
    context.close()


def test_what_is_folded_is_printed_and_a_dark_page_has_light_text_and_paper_stays_white(browser, page_file):
    tab = browser.new_page(viewport={"width": 1000, "height": 800})
    tab.goto(page_file.as_uri())
    folded = [tab.locator(where) for where in ("#rules p", "#overview table", "#subjects section:last-of-type figure")]
    assert not any(each.first.is_visible() for each in folded)
    tab.emulate_media(media="print")
    assert all(each.first.is_visible() for each in folded)
    heights = tab.evaluate("[...document.querySelectorAll('details svg')].map(s => s.getBoundingClientRect().height)")
    assert min(heights) > 100
    # Nor is anything cut off, or the page shrunk to fit: 720 px are the width of A4 in print.
    tab.set_viewport_size({"width": 720, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 720
    tab.close()
    seen = {}
    for scheme in ("light", "dark"):
        tab = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme=scheme)
        tab.goto(page_file.as_uri())
        colours = "(() => { const s = getComputedStyle(document.body); return [s.backgroundColor, s.color] })()"
        seen[scheme] = tab.evaluate(colours)
        tab.emulate_media(media="print")
        assert tab.evaluate(colours) == ["rgb(255, 255, 255)", "rgb(28, 36, 48)"]
        tab.close()
    assert seen["light"] == ["rgb(255, 255, 255)", "rgb(28, 36, 48)"]
    assert seen["dark"] == ["rgb(20, 24, 29)", "rgb(228, 232, 238)"]


def flag(subject, kind, size, severity="notable", **facts):
    sentence = KINDS[kind].told(KINDS[kind].wrong.format(**facts))
    return Flag(subject, kind, severity, size, None, size, sentence)


def test_flags_that_say_the_same_are_one_finding_that_names_them_all_with_the_number_of_each(diagnosis):
    flags = (
        flag("message recv", "goodness", 2.5, "serious", by="250.0 %", squared=0.1),
        flag("kernel dgemm", "outliers", 0.031, count=3, calls=90, by="3.1 %"),
        flag("kernel dtrsm", "goodness", 0.6, by="60.0 %", squared=0.2),
        flag("kernel dtrsm", "outliers", 0.052, count=9, calls=90, by="5.2 %"),
        flag("message recv", "outliers", 0.04, count=9, calls=90, by="4.0 %"),
    )
    judged = replace(diagnosis, flags=flags)
    found = findings(judged)
    # One for each kind and severity, in the order of the first flag of each.
    assert [(one.kind, one.severity, len(one.flags)) for one in found] == [
        ("goodness", "serious", 1),
        ("outliers", "notable", 3),
        ("goodness", "notable", 1),
    ]
    assert found[0].sentence == "Single calls are 250.0 % off the model on average (R² = 0.100)."
    assert found[1].remedy.startswith("The machine was interrupted.")
    assert all(one.sentence[:-1] in one.flags[0].sentence for one in found if len(one.flags) == 1)
    text = page(judged, "title")
    (item,) = re.findall(r'<li class="notable"><span class="badge">notable</span> <b>Outliers</b>.*?</li>', text)
    words = re.sub(r"<[^>]*>", "", item).replace("\u00a0", " ")
    assert "kernel dgemm (3.1 %), dtrsm (5.2 %), message recv (4.0 %): Part of the time went to calls" in words
    assert item.count("<a ") == 3
    assert found[1].remedy in item


def test_other_load_is_what_to_do_first_about_serious_findings(diagnosis):
    def first(judged, *, disturbed):
        lines = verdict_text(judged, (), False, 10_000, disturbed=disturbed).splitlines()
        return next((line for line in lines if line.startswith("  to do")), "")

    assert "calibrate again: other load" in first(diagnosis, disturbed=True)
    assert "other load" not in first(diagnosis, disturbed=False)
    assert first(replace(diagnosis, flags=()), disturbed=True) == ""


def test_the_answer_names_what_has_serious_findings(diagnosis):
    def of(*flags):
        return answer(replace(diagnosis, flags=flags))

    few = {"count": 3}
    assert of() == "This calibration is good: nothing was found that speaks against its models"
    assert "nothing is serious, and one thing is worth knowing" in of(flag("kernel dgemm", "calls", 1.0, **few))
    message = flag("message recv", "calls", 3.0, "serious", **few)
    assert of(message).endswith("is good for computing; of messages, recv has a serious finding")
    dgemm = next(subject.share for subject in diagnosis.subjects if subject.name == "kernel dgemm")
    kernel = flag("kernel dgemm", "calls", 3.0, "serious", **few)
    assert of(message, kernel).endswith(
        f"is not good: dgemm, {percent(dgemm)} of the kernels' time, has a serious finding"
    )
    others = [flag(f"kernel k{at}", "no model", 1.0, "serious", name=f"k{at}", calls=9) for at in range(5)]
    assert of(*others).endswith("is not good: k0, k1, k2 and 2 more have serious findings")
    assert of(flag("machine", "step", 0.3, "serious", what="longer")).endswith(
        "the machine changed while it was measured"
    )


def test_the_three_figures_are_those_of_planted_errors(diagnosis):
    kernels = [subject for subject in diagnosis.subjects if subject.calls.of.weighs_time]
    share = {kernel.name: kernel.share for kernel in kernels}
    # The mean of every class of dgemm is off by 10 %, those of the others by nothing: as much of the time is.
    planted = [
        replace(
            one, calls=replace(one.calls, mean=np.full_like(one.calls.mean, 0.9 if one.name == "kernel dgemm" else 1))
        )
        for one in kernels
    ]
    flags = (flag("kernel dgemm", "calls", 1.0, count=3), flag("machine", "step", 0.25, what="longer"))
    judged = replace(diagnosis, subjects=tuple(planted), flags=flags)
    seen = figures(judged)
    assert seen.mean_error == pytest.approx(0.1 * share["kernel dgemm"], rel=1e-9)
    assert seen.time_without_finding == pytest.approx(1.0 - share["kernel dgemm"], rel=1e-9)
    assert seen.machine_change == 0.25
    unsure = figures(replace(judged, flags=()))
    assert unsure.machine_change == 0.0
    largest = max(check.size for check in diagnosis.machines[0].checks if check.able and check.kind in CHANGES)
    assert unsure.possible_change == largest  # the step that was planted, were it no finding
    assert f"one of {percent(largest)} may be chance" in text_of(page(replace(judged, flags=()), "title"))
    nothing_known = figures(replace(judged, subjects=(), machines=()))
    assert np.isnan([nothing_known.mean_error, nothing_known.time_without_finding, nothing_known.machine_change]).all()
    assert page(replace(judged, subjects=(), machines=()), "title")


@pytest.mark.slow
def test_the_command_prints_the_serious_findings_and_writes_both_reports(tmp_path, output_of, json_of):
    kernels = slower_from_the_middle(kernel_rows(20, 200, kernels=("dgemm", "dtrsm"), gap_s=5.0))
    path = write_calibration(tmp_path / "c.zip", kernels=kernels)
    out, page = tmp_path / "p.yaml", tmp_path / "r.html"
    data = json_of("fit", path, "-o", out, "--json")
    told = output_of("fit", path, "-o", out, "--report", page, "--force")
    # The terminal, the page and the data say one sentence.
    answered = data["answer"]
    assert told.splitlines()[0] == answered
    assert answered.startswith("This calibration is not good")
    assert answered in html.unescape(page.read_text())
    assert re.search(r"^  to do   .*machine.*: The level changed during the measurement", told, re.MULTILINE)
    assert page.read_text().startswith("<!doctype html>")
    assert data["flags"]
    assert data["platform_sha256"].startswith(load_platform(out).sha256[:12])


@pytest.mark.slow
def test_a_platform_can_be_judged_by_measurements_of_another_day(tmp_path):
    """A machine that became slower by a third since its platform was made: the level says so."""
    first = Archive.open(write_calibration(tmp_path / "first.zip"))
    assert main(["fit", str(first.path), "-o", str(tmp_path / "p.yaml")]) == 0
    later = kernel_rows(seed=5)
    later = later.assign(duration_s=later["duration_s"] * 1.3, start_s=later["start_s"] * 1.3)
    second = Archive.open(write_calibration(tmp_path / "second.zip", kernels=later, messages=message_rows(seed=6)))
    found = diagnose(second, load_platform(tmp_path / "p.yaml"))
    (level,) = [flag for flag in found.of("kernel dgemm") if flag.kind == "level"]
    assert (level.severity, level.size) == ("serious", pytest.approx(0.3, abs=0.03))


def test_factors_and_dependence_of_the_fit_become_flags_and_tables(diagnosis):
    def tested(factor: str, reference: str, p: float, **ratios: float) -> FactorTest:
        effects = tuple(LevelEffect(level, ratio, None, None) for level, ratio in ratios.items())
        return FactorTest(factor, "dgemm", reference, effects, 2.0, p, p, 999, False, "calls", 64, 16, "")

    content = tested("content", "random", 0.001, **{"constant": 0.8, "<b>": 0.99})
    chance, tiny = tested("warm", "0", 0.4, **{"1": 1.5}), tested("pinning", "pinned", 0.001, free=1.01)
    (flag,) = factor_flags([content, chance, tiny], {"dgemm": 0.5}, 0.01)
    assert (flag.subject, flag.severity) == ("kernel dgemm", "serious")
    assert "with constant calls take 20.0 % shorter than with random" in flag.sentence
    assert factor_flags([content], {"dgemm": 0.0001}, 0.01) == []
    limit = DependenceReport("dgemm", 900, 0.5, 0.1, 0.0, 50, 3.0, 1.5, 0.0, 1.0)
    fine = replace(limit, kernel="dtrsm", width=1.0)
    (flag,) = dependence_flags([limit, fine], {"dgemm": 0.5})
    assert flag.size == 1.0
    assert flag.sentence.casefold() in limit.sentence.casefold()
    text = page(replace(diagnosis, factor_tests=(content,), dependence=[limit]), "title")
    assert "level constant, ratio 0.800; level &lt;b&gt;, ratio 0.990" in text
    assert escape(limit.sentence) in text


def two_hosts(slow=1.0, seed=3):
    """The same calibration on two hosts whose clocks have nothing in common."""
    first, second = kernel_rows(24, 150, seed=seed), kernel_rows(24, 150, seed=seed + 1)
    second = second.assign(host="there", start_s=second["start_s"] * slow + 1e6, duration_s=second["duration_s"] * slow)
    return pandas.concat([first.assign(host="here"), second], ignore_index=True).assign(kernel="dtrsm")


@pytest.mark.slow
def test_a_slow_host_is_found_and_each_host_has_a_course_of_time_of_its_own(tmp_path):
    # One model for all cores and hosts was asked for, so the difference is seen in what that model leaves.
    path = write_calibration(tmp_path / "c.zip", two_hosts(1.25), machines={"here": MACHINE, "there": MACHINE})
    archive = Archive.open(path)
    found = diagnose(archive, models(archive, kernel_model="M-2/N-2"))
    (flag,) = [flag for flag in found.of("kernel dtrsm") if flag.kind == "hosts"]
    assert flag.sentence.startswith("there takes 2")
    assert flag.severity == "serious"
    assert [machine.host for machine in found.machines] == ["here", "there"]
    assert all(machine.series is not None and machine.series.start_s.min() < 60 for machine in found.machines)
    write_report(found, tmp_path / "r.html")
    assert "Level of all kernels of there" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_an_experiment_has_no_models_to_report_on(tmp_path, refusal_of):
    path = write_calibration(tmp_path / "c.zip", kind="experiment")
    told = refusal_of("fit", path, "-o", tmp_path / "p.yaml", "--report", tmp_path / "r.html")
    assert "experiments yield none" in told
    assert not (tmp_path / "r.html").exists()

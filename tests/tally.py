# SPDX-License-Identifier: MIT
"""Count test results for tests/run.

    tally.py one     RESULTS SUITE passed|failed|skipped NAME [REASON...]
    tally.py meson   RESULTS CONFIG BUILD_FOLDER LOG
    tally.py tap     RESULTS SUITE REPORT FILE
    tally.py junit   RESULTS SUITE REPORT LOG
    tally.py summary RESULTS

RESULTS is a file of tab-separated lines: suite, outcome, name, reason.
What failed is printed as it is read. A test of REPORT that failed and is ok in
REPORT.second has passed at its second try. `summary` counts the skipped
tests by reason, prints the one line of totals and exits with 1 when anything
failed.
With GPEMU_ALL_INSTALLED set, a test skipped for want of a package has failed.
"""
import collections
import json
import os
import re
import sys
from xml.etree import ElementTree

CMOCKA = re.compile(r"^\[\s+(OK|FAILED|SKIPPED|ERROR)\s+\] (\S.*)$")
WHY = re.compile(r"^skipped: (.*)$")
TAP = re.compile(r"^(not ok|ok) \d+ (.*)$")
SECOND = "second try"


def add(results, suite, outcome, name, reason=""):
    if outcome == "skipped" and "not installed" in reason \
            and os.environ.get("GPEMU_ALL_INSTALLED"):
        print(f"FAILED {suite} {name}: {reason}")
        outcome = "failed"
    with open(results, "a") as f:
        row = (suite, outcome, name, reason)
        f.write("\t".join(" ".join(c.split()) for c in row) + "\n")


def took(results, seconds, what):
    """For tests/run --times, whose table is in the folder of the results."""
    with open(os.path.join(os.path.dirname(results), "times"), "a") as f:
        f.write(f"{round(seconds):5} s  {what}\n")


def last_line(text):
    lines = [l.strip() for l in text.splitlines() if l.strip()]
    return lines[-1] if lines else "no reason given"


def indented(text, n=40):
    for line in text.splitlines()[-n:]:
        print("    " + line)


def cases_of(output):
    """{case: (outcome, why a part of it was skipped)} of cmocka's output."""
    cases, why = {}, ""
    for line in output.splitlines():
        if m := WHY.match(line.strip()):
            why = m[1]
        elif m := CMOCKA.match(line):
            # a list of those that did not pass follows
            cases.setdefault(m[2], (m[1], why))
            why = ""
    return {c: v for c, v in cases.items() if ":" not in c and " " not in c}


def add_program(results, suite, test):
    """One entry of meson's log: a program, whose cases cmocka names."""
    name = test["name"]
    text = test.get("stdout") or ""
    output = text + "\n" + (test.get("stderr") or "")
    result = test["result"]
    if result == "SKIP":
        add(results, suite, "skipped", name,
            last_line(output).removeprefix("skipped: "))
        return
    n_failed = 0
    cases = cases_of(output)
    for case, (how, why) in sorted(cases.items()):
        if how == "OK" and not why:
            add(results, suite, "passed", f"{name}: {case}")
        elif how in ("OK", "SKIPPED"):
            add(results, suite, "skipped", f"{name}: {case}",
                why or "no reason given")
        else:
            n_failed += 1
            add(results, suite, "failed", f"{name}: {case}")
    if result not in ("OK", "EXPECTEDFAIL"):
        if not n_failed:
            add(results, suite, "failed", name, result)
        print(f"FAILED {suite} {name}: {result}")
        indented(output)
    elif not cases:
        add(results, suite, "passed", name)


def suites_of(build):
    """Which suite each test program is in: "units" -> "unit"."""
    with open(f"{build}/meson-info/intro-tests.json") as f:
        return {t["name"]: t["suite"][0].rpartition(":")[2]
                for t in json.load(f)}


def meson(results, config, build, log):
    path = f"{build}/meson-logs/testlog.json"
    try:
        with open(path) as f:
            tests = [json.loads(line) for line in f if line.strip()]
    except FileNotFoundError:
        with open(log) as f:
            text = f.read()
        if "No tests defined" not in text:
            add(results, config, "failed", "meson test", "no log")
            indented(text)
        return
    suites = suites_of(build)
    for test in tests:
        # with several suites the log says "project:unit / units"
        test["name"] = test["name"].rpartition(" / ")[2]
        suite = suites[test["name"]]
        add_program(results, f"{config} {suite}", test)
        took(results, test["duration"],
             f"{config} tests/{suite}/test_{test['name']}.c")


def second_try(path):
    """The names of the tests that passed when run once more."""
    try:
        with open(path + ".second", errors="replace") as f:
            found = [TAP.match(line.rstrip("\n")) for line in f]
    except FileNotFoundError:
        return set()
    return {m[2] for m in found if m and m[1] == "ok" and "# skip" not in m[2]}


def tap(results, suite, path, file):
    again = second_try(path)
    planned = seen = 0
    failing = False
    with open(path, errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("1.."):
                planned = int(line[3:])
                continue
            m = TAP.match(line)
            if not m:
                if failing:
                    print("    " + line)
                elif not line.startswith("#"):
                    print(line)
                continue
            seen += 1
            name, _, reason = m[2].partition(" # skip")
            failing = m[1] == "not ok"
            if failing and name in again:
                print(f"SECOND TRY {suite}: {name}")
                add(results, suite, "passed", name, SECOND)
            elif failing:
                print(f"FAILED {suite}: {name}")
                add(results, suite, "failed", name)
            elif " # skip" in line:
                add(results, suite, "skipped", name, reason.strip() or
                    "no reason given")
            else:
                add(results, suite, "passed", name)
    if seen < planned or not planned:
        print(f"FAILED {suite}: {file}: {seen} of {planned} tests reported")
    for n in range(seen, planned or 1):
        add(results, suite, "failed", f"{file}: {n + 1}", "never reported")


def cases_of_pytest(path):
    """[(name, element)] of a report; no report has none."""
    try:
        cases = list(ElementTree.parse(path).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []
    return [(f"{c.get('classname').rpartition('.')[2]}: {c.get('name')}", c)
            for c in cases]


def broken(case):
    """What pytest says of a test that failed, or None."""
    for kind in ("failure", "error"):
        found = case.find(kind)
        if found is not None:
            return found.text or found.get("message") or "no reason given"
    return None


def why_broken(text):
    """Of a traceback: the lines that say what was wrong, and where."""
    lines = [l for l in text.splitlines()
             if l.startswith("E ") or re.match(r"\S+:\d+: ", l)]
    return lines or text.splitlines()[-20:]


def junit(results, suite, path, log):
    """pytest's report; its log is shown if there is none."""
    cases = cases_of_pytest(path)
    again = {n for n, c in cases_of_pytest(path + ".second")
             if broken(c) is None and c.find("skipped") is None}
    seconds = collections.Counter()
    for name, case in cases:
        seconds[case.get("classname")] += float(case.get("time"))
        skipped = case.find("skipped")
        if (text := broken(case)) is not None:
            passed = name in again
            lines = why_broken(text)
            print(f"{'SECOND TRY' if passed else 'FAILED'} {suite} {name}")
            indented("\n".join(lines))
            for out in ("system-out", "system-err"):
                # what it printed, without headings
                printed = [l for l in (case.findtext(out) or "").splitlines()
                           if l and not l.startswith("-----")]
                indented("\n".join(printed), 20)
            add(results, suite, "passed" if passed else "failed", name,
                SECOND if passed else lines[0].removeprefix("E "))
        elif skipped is not None:
            add(results, suite, "skipped", name,
                skipped.get("message") or "no reason given")
        else:
            add(results, suite, "passed", name)
    for module, its in seconds.items():
        took(results, its, f"{suite.split()[0]} {module.replace('.', '/')}.py")
    if not cases:
        print(f"FAILED {suite}: pytest reported nothing")
        add(results, suite, "failed", "pytest", "no report")
        with open(log, errors="replace") as f:
            indented(f.read(), 200)


def summary(results):
    with open(results) as f:
        rows = [line.rstrip("\n").split("\t") for line in f]
    print()
    suites = {}
    for suite, outcome, _, _ in rows:
        count = suites.setdefault(suite, dict(passed=0, failed=0, skipped=0))
        count[outcome] += 1
    for suite, c in suites.items():
        print(f"{suite:14} {c['passed']:5} passed {c['failed']:4} failed "
              f"{c['skipped']:4} skipped")
    for suite, how, name, reason in rows:
        if how != "passed" or reason:
            print(f"{how}: {suite}: {name}" + (f": {reason}" if reason else ""))
    reasons = collections.Counter(r[3] for r in rows if r[1] == "skipped")
    for reason, count in reasons.most_common():
        print(f"{count:5} skipped: {reason}")
    if second := sum(r[3] == SECOND for r in rows):
        print(f"{second:5} passed at their second try")
    n = {o: sum(r[1] == o for r in rows)
         for o in ("passed", "failed", "skipped")}
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**n))
    return 1 if n["failed"] or not n["passed"] else 0


def main():
    verb, results, *rest = sys.argv[1:]
    if verb == "one":
        add(results, *rest[:3], " ".join(rest[3:]))
    elif verb == "meson":
        meson(results, *rest)
    elif verb == "tap":
        tap(results, *rest)
    elif verb == "junit":
        junit(results, *rest)
    else:
        return summary(results)
    return 0


sys.exit(main())

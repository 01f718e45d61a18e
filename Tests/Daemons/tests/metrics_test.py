"""The output of `causeway metrics`, its description in docs/operations/read-the-box.md, and the dashboard in
config/grafana.

Two real daemons run on the loopback interface."""
import json
import os
import re
import unittest

from daemons import DaemonsTest, wait

PROJECT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../..")
LABEL = r'[a-z]+="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\d+)")
# The suffix of sample names for each type of metric (OpenMetrics 1.0, “Metric Types”).
SUFFIX = {"gauge": "", "counter": "_total", "info": "_info"}


def parse(text):
    """Parse OpenMetrics text. Returns family → (type, samples), where a sample is (labels, value). Invalid text raises
    an error."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-3:]
    families, helped, current = {}, None, None
    for line in lines[:-2]:
        if line.startswith("# HELP "):
            _, _, helped, _ = line.split(" ", 3)
            assert helped not in families, helped
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == helped and kind in SUFFIX, line
            families[current] = (kind, [])
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            kind, samples = families[current]
            assert name == current + SUFFIX[kind], line
            labels = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', labels or ""))
            assert labels not in [known for known, _ in samples], line
            samples.append((labels, int(value)))
    return families


def sample_names(families):
    return {name + SUFFIX[kind] for name, (kind, _) in families.items()}


class MetricsTest(DaemonsTest):
    def pair(self):
        one = self.daemon("one")
        other = self.daemon("other", one, display='o"t\\her')
        one.start()
        other.start()
        wait("they are linked", lambda: one.neighbours() and any(link.get("round_trip_microseconds") for link in one.status["links"]))
        return one

    def metrics(self, daemon):
        code, out, err = daemon.run("metrics")
        self.assertEqual((code, err), (0, ""))
        return parse(out)

    def test_they_say_what_the_status_says(self):
        one = self.pair()
        families, status = self.metrics(one), one.status
        self.assertEqual(families["causeway_box"][1], [({"id": status["box"]["id"], "name": "one", "version": status["box"]["version"]}, 1)])
        self.assertEqual(families["causeway_peers"][1], [({}, 1)])
        self.assertEqual(families["causeway_links"][1], [({}, 1)])
        (labels, received), = families["causeway_link_received_bytes"][1]
        link = status["links"][0]
        self.assertEqual((labels["id"], labels["bearer"], labels["link"]), (link["peer"], link["bearer"], str(link["slot"])))
        self.assertTrue(0 < received <= link["bytes_received"])
        self.assertEqual(labels["name"], r'o\"t\\her')

    def test_a_textfile_is_replaced_as_a_whole(self):
        one, path = self.daemon("one").start(), self.path("causeway.prom")
        for _ in range(2):
            self.assertEqual(one.run("metrics", "--textfile", path), (0, "", ""))
            with open(path) as file:
                self.assertEqual(parse(file.read())["causeway_peers"][1], [({}, 0)])
        self.assertEqual([name for name in os.listdir(self.root) if "prom" in name], ["causeway.prom"])
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o644)
        code, _, err = one.run("metrics", "--textfile", self.path("nowhere/causeway.prom"))
        self.assertEqual(code, 1)
        self.assertIn("No such file", err)

    def test_the_papers_name_them_all(self):
        names = sample_names(self.metrics(self.pair()))
        with open(os.path.join(PROJECT, "docs/operations/read-the-box.md")) as file:
            documented = set(re.findall(r"^\| `(causeway_[a-z_]+)`", file.read(), re.M))
        self.assertEqual(documented, names)

    def test_the_dashboard_shows_them_all_and_no_others(self):
        names = sample_names(self.metrics(self.pair()))
        with open(os.path.join(PROJECT, "config/grafana/causeway.json")) as file:
            dashboard = json.load(file)
        shown = {name for panel in dashboard["panels"] for target in panel["targets"]
                 for name in re.findall(r"causeway_[a-z_]+", target["expr"])}
        self.assertEqual(shown, names)
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Checks that alert rules and dashboard ask for metrics that the server has: check_monitoring.py <project root>.

And the table of metrics in docs/operations.md, which has to have all of them.
"""

import json
import pathlib
import re
import sys

METRIC = re.compile(r"\borrery_[a-z_]+")


def main():
    root = pathlib.Path(sys.argv[1])
    served = set(re.findall(r'"(orrery_[a-z_]+)"', (root / "src/server/metrics.cc").read_text()))
    described = set(METRIC.findall((root / "docs/operations.md").read_text()))
    monitoring = root / "packaging/monitoring"
    dashboard = json.loads((monitoring / "grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [item["query"] for item in dashboard["templating"]["list"]]
    asked = {"grafana-dashboard.json": set(METRIC.findall(" ".join(queries))),
             "alerts.yml": set(METRIC.findall((monitoring / "alerts.yml").read_text()))}
    faults = [f"packaging/monitoring/{file}: the server has no metric {name}"
              for file, names in asked.items() for name in sorted(names - served)]
    faults += [f"docs/operations.md: {name} has no row" for name in sorted(served - described)]
    faults += [f"packaging/monitoring/{file}: asks for nothing" for file, names in asked.items() if not names]
    print("\n".join(faults) or f"{len(served)} metrics")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

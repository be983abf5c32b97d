# SPDX-License-Identifier: MIT
"""Sums up meson's test logs: summary.py FOLDER [BROKEN-PLATFORM...]. Fails unless all is well."""
import json
import pathlib
import re
import sys

folder, broken = pathlib.Path(sys.argv[1]), sys.argv[2:]
GOOD = ("OK", "EXPECTEDFAIL")
total = {"passed": 0, "failed": 0, "skipped": 0}
platforms = {}
for log in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime):
    counts = platforms.setdefault(log.stem.split("-")[0], dict.fromkeys(total, 0))
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        kind = "passed" if entry["result"] in GOOD else \
            "skipped" if entry["result"] == "SKIP" else "failed"
        counts[kind] += 1
        for found in re.findall(r"^signature (\w+) (\w+): (.*)", entry.get("stdout") or "", re.M):
            counts.setdefault("signatures", []).append(found)

for platform, counts in platforms.items():
    print(f"{platform:8} " + ", ".join(f"{counts[kind]} {kind}" for kind in total))
    for kind, value, where in counts.get("signatures", []):
        print(f"{'':8} signature {kind:3} {value} on {where}")
    for kind in total:
        total[kind] += counts[kind]
# A platform that did not build, or lost its log, has a failure that no log shows.
total["failed"] += sum(platforms.get(name, {"failed": 0})["failed"] == 0 for name in broken)
if broken:
    print("failed: " + ", ".join(broken))
print(", ".join(f"{total[kind]} {kind}" for kind in total))
sys.exit(1 if total["failed"] or not total["passed"] else 0)

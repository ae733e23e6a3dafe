"""The report: Markdown for people, JSON for programs."""
import json
from statistics import median

from lib import targets
from lib.stats import Ratio


def ratio_of(line, key, base):
    values, of = line.values.get(key), line.values.get(base)
    return Ratio(values, of) if values and of else None


def table(head, rows):
    out = ["| " + " | ".join(head) + " |", "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|"]
    return out + ["| " + " | ".join(row) + " |" for row in rows]


def number(value):
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def cell(line, contender):
    if contender.missing:
        return "not available"
    if contender.key in line.failed:
        return "failed"
    ratio = ratio_of(line, contender.key, "native")
    return str(ratio) if ratio and ratio.pairs else ""


def of(line):
    return "" if line.base == "native" else f" ({line.base})"


def speed_row(line, contenders):
    native = line.values.get("native", {})
    others = [c for c in contenders if c.key != "native"]
    return [line.name + (" (less is better)" if line.less else ""),
            f"{number(median(native.values()))} {line.unit}{of(line)}" if native else "",
            *[cell(line, c) for c in others], str(len(native)), line.load]


def speed_table(lines, contenders):
    others = [c.title for c in contenders if c.key != "native"]
    return table(["", "native", *others, "pairs", "load"], [speed_row(l, contenders) for l in lines])


def cost_cell(line, contender):
    if contender.key not in line.cpu or contender.key in line.failed:
        return "not available" if contender.missing else ""
    seconds, work = line.cpu[contender.key]
    return f"{seconds / work:.2f} s/{line.work}, {line.resident[contender.key] / 1024:.0f} MiB" if work else ""


def cost_table(lines, contenders):
    daemons = [c for c in contenders if c.key != "native"]
    return table(["", *[c.title for c in daemons]],
                 [[line.name, *[cost_cell(line, c) for c in daemons]] for line in lines])


def target_table(findings):
    return table(["", "column", "target", "figure", ""],
                 [[f.name, f.column, f.target, f.figure, f.verdict] for f in findings])


def failures(lines):
    return [f"- {why}" for line in lines for why in line.failed.values()]


def missing(contenders):
    return [f"- {c.title}: not available: {c.missing}" for c in contenders if c.missing]


def section(title, text, lines):
    return [f"## {title}", "", *([text, ""] if text else []), *lines, ""] if lines else []


def markdown(bench):
    lines, findings = bench.measured, targets.findings(bench)
    about = [f"- {name}: {value}" for name, value in bench.machine]
    about += [f"- {bench.mode}; load average at the end: {bench.load_at_end}", *missing(bench.contenders)]
    return "\n".join(
        ["# Benchmarks of eddyfs", "", *about, ""]
        + section("Speed", "Ratios to native in the same round: median [95 % interval].",
                  speed_table(lines, bench.contenders) if lines else [])
        + section("What the daemons used", "CPU time per unit of work, and resident memory.",
                  cost_table(lines, bench.contenders) if lines else [])
        + section("Targets", f"Held: the median reaches it, and the interval misses it by {targets.SLACK:g} at most.",
                  target_table(findings) if findings else [])
        + section("What failed", "", failures(lines) + bench.failures))


def raw(bench):
    return json.dumps({
        "machine": dict(bench.machine),
        "lines": [{"name": l.name, "unit": l.unit, "less": l.less, "values": l.values, "cpu": l.cpu,
                   "cpu_per": l.work, "resident_kib": l.resident, "failed": l.failed, "load": l.load}
                  for l in bench.measured],
        "targets": [vars(f) for f in targets.findings(bench)],
    }, indent=1)

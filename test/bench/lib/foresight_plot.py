"""The plots of test/bench/foresight: restore rate and distance over the files that are read, and bandwidth by order and hints."""
import subprocess
from statistics import median

from lib.plot import quoted
from lib.work import Failed

WIDTH, HEIGHT = 480, 300
COLOURS = ["#7f7f7f", "#0060ad", "#dd181f", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#17becf"]


def gnuplot(text):
    done = subprocess.run(["gnuplot"], input=text, text=True, capture_output=True)
    if done.returncode:
        raise Failed(f"gnuplot: {done.stderr.strip()[-300:]}")


def data(name, lines):
    return "\n".join([f"${name} << end", *lines, "end"])


def over_files(runs):
    """Number, MB/s, distance of each file that is read: medians over the rounds."""
    rounds = [r.points for r in runs.values()]
    for same in zip(*rounds):
        yield f"{same[0][0]:.0f} {median(p[1] / p[2] / 1e3 for p in same):.1f} {median(p[3] for p in same):.1f}"


def panel(n, title, runs, column, label):
    """One graph: of each kind of hints, this column of over_files."""
    plots = [f"${hints}{n} using 1:{column} with lines linewidth 2 linecolor rgb {quoted(COLOURS[k % len(COLOURS)])} title {quoted(hints)}"
             for k, hints in enumerate(runs)]
    return "\n".join([f"set title {quoted(title)}", f"set ylabel {quoted(label)}",
                      "set logscale y" if column == 2 else "unset logscale y", f"plot {', '.join(plots)}"])


def draw_restore(all_runs, output):
    blocks, panels = [], []
    for n, ((compute, order), runs) in enumerate(all_runs.items()):
        blocks += [data(f"{hints}{n}", over_files(of)) for hints, of in runs.items()]
        title = f"{order}, {compute} ms between"
        panels += [panel(n, title, runs, 2, "MB/s"), panel(n, title, runs, 3, "files ahead")]
    rows = len(all_runs)
    gnuplot("\n".join([f'set terminal svg size {2 * WIDTH},{HEIGHT * rows} dynamic background rgb "white" font "sans,11"',
                       f"set output {quoted(output)}", *blocks, f"set multiplot layout {rows},2",
                       'set xlabel "file"', "set key top right", *panels, "unset multiplot"]) + "\n")


def draw_bandwidth(all_runs, output):
    """A group of boxes for each order, one for each kind of hints."""
    kinds = list(next(iter(all_runs.values())))
    lines = []
    for (compute, order), runs in all_runs.items():
        values = [f"{median(r.restore for r in runs[hints].values()) / 1e6:.1f}" for hints in kinds]
        lines.append(f"{quoted(f'{order}, {compute} ms')} {' '.join(values)}")
    plots = [f"$all using {k + 2}:xtic(1) linecolor rgb {quoted(COLOURS[k % len(COLOURS)])} title {quoted(hints)}"
             for k, hints in enumerate(kinds)]
    gnuplot("\n".join([f'set terminal svg size {WIDTH + 160 * len(lines)},500 dynamic background rgb "white" font "sans,11"',
                       f"set output {quoted(output)}", data("all", lines), "set style data histogram",
                       "set style histogram clustered gap 1", "set style fill solid", "set logscale y",
                       'set ylabel "restore, MB/s"', "set key outside right top", f"plot {', '.join(plots)}"]) + "\n")

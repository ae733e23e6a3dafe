"""The plot: a point with its interval for each line of the table and each contender."""
import subprocess

from lib.report import ratio_of
from lib.work import Failed

WIDTH_OF_LINE = 26
HEAD = """set terminal svg size {width},900 dynamic background rgb "white" font "sans,12"
set output {output}
set title "Speed beside the native file system (1: the same; median and 95 % interval)"
set logscale y
set format y "%g"
set grid y
set key outside top center horizontal
set xrange [-1:{lines}]
set xtics rotate by -60 ({tics})
set bmargin 26
plot 1 with lines linecolor rgb "gray40" notitle, {plots}
"""


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("_", "\\\\_") + '"'


def points(lines, contender, shift):
    """x median low high; a ratio of times is turned over, so that up is faster everywhere."""
    for x, line in enumerate(lines):
        ratio = ratio_of(line, contender.key, "native")
        if ratio and ratio.pairs:
            figures = [ratio.median, ratio.low, ratio.high]
            if line.less:
                figures = [1 / ratio.median, 1 / ratio.high, 1 / ratio.low]
            yield " ".join(f"{v:.6g}" for v in [x + shift, *figures])


def script(lines, contenders, output):
    blocks, plots = [], []
    for n, contender in enumerate(contenders):
        data = list(points(lines, contender, (n - (len(contenders) - 1) / 2) * 0.15))
        if data:
            blocks.append("\n".join([f"$data{n} << end", *data, "end"]))
            plots.append(f"$data{n} with yerrorbars pointtype 7 pointsize 0.5 title {quoted(contender.title)}")
    if not plots:
        return None
    tics = ", ".join(f"{quoted(line.name)} {x}" for x, line in enumerate(lines))
    width = 400 + WIDTH_OF_LINE * len(lines)
    head = HEAD.format(width=width, output=quoted(output), lines=len(lines), tics=tics, plots=", ".join(plots))
    return "\n".join([*blocks, head])


def draw(bench, output):
    lines = [line for line in bench.measured if line.values.get("native")]
    text = script(lines, [c for c in bench.contenders if c.key != "native"], output)
    if not text:
        return
    done = subprocess.run(["gnuplot"], input=text, text=True, capture_output=True)
    if done.returncode:
        raise Failed(f"gnuplot: {done.stderr.strip()[-300:]}")

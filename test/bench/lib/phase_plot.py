"""The plot: for each policy dirty bytes and what goes to the PFS over time, I/O phases in grey."""
import subprocess

from lib.plot import quoted
from lib.work import Failed

HEIGHT = 220
MIB = 1 << 20
HEAD = """set terminal svg size 1000,{height} dynamic background rgb "white" font "sans,11"
set output {output}
set multiplot layout {panels},1
set xrange [0:{end}]
set yrange [0:{dirty}]
set y2range [0:{rate}]
set ytics nomirror
set y2tics
set ylabel "dirty, MiB"
set y2label "to the PFS, MB/s"
set key outside right top
"""


def rates(samples, begin, width=0.2):
    """MB/s in steps of `width` seconds."""
    points, last = [], None
    for t, value in samples:
        if last is None:
            last = (t, value)
        elif t - last[0] >= width:
            points.append(((last[0] + t) / 2 - begin, (value - last[1]) / (t - last[0]) / 1e6))
            last = (t, value)
    return points


def data(name, points):
    return "\n".join([f"${name} << end", *(f"{x:.3f} {y:.3f}" for x, y in points or [(0, 0)]), "end"])


def panel(n, title, result, begin):
    boxes = [f"set object rectangle from {b - begin:.3f}, graph 0 to {e - begin:.3f}, graph 1 behind "
             f'fillcolor rgb "gray85" fillstyle solid noborder' for kind, b, e in result.phases if kind == "io"]
    dirty = [(t - begin, value / MIB) for t, value in result.sampler.dirty]
    return "\n".join([data(f"dirty{n}", dirty), data(f"rate{n}", rates(result.sampler.written, begin)),
                      "unset object", *boxes, f"set title {quoted(title)}",
                      f'plot $dirty{n} with lines linewidth 2 linecolor rgb "#0060ad" title "dirty", '
                      f'$rate{n} axes x1y2 with lines linecolor rgb "#dd181f" title "to the PFS"'])


def draw(results, output):
    """`results`: title and Result of one run of each policy."""
    begins = [result.phases[0][1] for _, result in results]
    ends = [result.sampler.written[-1][0] - begin for (_, result), begin in zip(results, begins)]
    most = max((value for _, result in results for _, value in result.sampler.dirty), default=0)
    fastest = max((y for (_, result), begin in zip(results, begins)
                   for _, y in rates(result.sampler.written, begin)), default=0)
    head = HEAD.format(height=HEIGHT * len(results), output=quoted(output), panels=len(results), end=max(ends),
                       dirty=max(1, most / MIB * 1.1), rate=max(1, fastest * 1.1))
    text = "\n".join([head, *(panel(n, title, result, begin)
                              for n, ((title, result), begin) in enumerate(zip(results, begins))), "unset multiplot"])
    done = subprocess.run(["gnuplot"], input=text, text=True, capture_output=True)
    if done.returncode:
        raise Failed(f"gnuplot: {done.stderr.strip()[-300:]}")

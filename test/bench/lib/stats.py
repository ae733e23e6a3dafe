"""Medians and their confidence intervals."""
import random
from statistics import median

RESAMPLES = 2000
CONFIDENCE = 0.95


def interval(values):
    """Percentile bootstrap of the median (Efron 1979): (low, high)."""
    if len(values) < 2:
        return (values[0], values[0])
    draw = random.Random(len(values))  # the same samples give the same interval
    medians = sorted(median(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    tail = (1 - CONFIDENCE) / 2
    return (medians[int(RESAMPLES * tail)], medians[int(RESAMPLES * (1 - tail)) - 1])


class Ratio:
    """Of two measurements of the same round: the median over the rounds, and its interval."""

    def __init__(self, values, base):
        pairs = [values[n] / base[n] for n in sorted(values) if base.get(n)]
        self.pairs = len(pairs)
        self.median = median(pairs) if pairs else None
        self.low, self.high = interval(pairs) if pairs else (None, None)

    def __str__(self):
        return f"{short(self.median)} [{short(self.low)}, {short(self.high)}]"


def short(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"

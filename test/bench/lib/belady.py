"""Belady's bound: how few misses a cache can have that knows the future (L. A. Belady, IBM Systems Journal 1966)."""
import heapq

NEVER = float("inf")


def next_uses(trace):
    """Of each place in the trace: where the same item is used next."""
    uses, later = [NEVER] * len(trace), {}
    for place in range(len(trace) - 1, -1, -1):
        uses[place] = later.get(trace[place], NEVER)
        later[trace[place]] = place
    return uses


def misses(trace, room):
    """Of items of one size, of which `room` fit.  An item that misses need not be kept: what is used last of those that are
    here and the new one goes."""
    here, farthest, count = {}, [], 0
    for place, (item, use) in enumerate(zip(trace, next_uses(trace))):
        count += item not in here
        here[item] = use
        heapq.heappush(farthest, (-use, item))
        while len(here) > room:
            negative, item = heapq.heappop(farthest)
            if here.get(item) == -negative:
                del here[item]
    return count

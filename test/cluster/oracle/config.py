"""Modes by seed. Seeds with the same daemons' options (their lane) run one after the other on the same daemons, each in
a directory of its own."""

import random

LANES = 24
FLUSH = ("idle", "immediate", "close", "end")
PROFILES = ("data", "names", "mixed", "locks")


def lane_of(seed):
    return seed % LANES


def daemons_of(lane, rng):
    """Each of nodes, policy and passthrough with each of the others; the rest by chance."""
    return {
        "nodes": 2 + lane % 3,
        "passthrough": lane // 3 % 2 == 0,
        "flush": FLUSH[lane // 6],
        "flush_wait": rng.choice((0.05, 0.3, 1)),
        "cache_size": rng.choice(("3M", "8M", "64M")),
        "attr_timeout": rng.choice((0.02, 0.02, 0.1, 1)),
        "fsync": rng.choice(("local", "local", "pfs")),
    }


def config_of(seed):
    config = daemons_of(lane_of(seed), random.Random(f"lane {lane_of(seed)}"))
    rng = random.Random(f"config {seed}")
    profiles = ("data", "locks") if config["attr_timeout"] >= 1 else PROFILES
    return {
        **config,
        "seed": seed,
        "lane": lane_of(seed),
        "profile": rng.choice(profiles),
        "looks": rng.choice((1, 1, 0.5, 0.2)),     # how often a change is looked at at once
        "sizes": rng.choice(("small", "chunks")),  # of files: some pages, or some chunks
        "faults": (lane_of(seed) + seed // LANES) % 4 == 3,  # nodes are killed, unmounted and started again
    }

#!/usr/bin/env python3
"""Do calls go one way?  rooms.py SOURCE_DIR BUILD_DIR

Reads the order of the rooms from meson.build, the includes from the sources and the calls from the built libraries.
Prints each violation on a line; the exit code is 1 if there is one."""
import os
import re
import subprocess
import sys

MOST_PROTOTYPES = 25

# Files that are one idea, and may call each other in a circle: names in a room, by their beginnings.
IDEAS = {
    "transport": [["members"], ["peer", "buffers", "ucx_loop"]],
    "placement/store": [["datafile"]],
    "placement/pfs": [["pfs"]],
    "placement/claims": [["home"], ["claim"]],
    "placement/chunks": [["flight", "ask", "origin"]],
    "placement": [["carry"]],
    "fs/daemon": [["control"]],
}
# What programs link, and the only header of a room that it may include.
LIBRARY, WIRE = "tools/lib", "placement/foresight/queue_wire.h"
LIBRARIES = {  # headers, and the rooms that may include them
    r"fuse.*\.h": ["fs", "fs/daemon"],
    r"(uc[pstm]/.*|uv)\.h": ["transport"],
}


def rooms_of(source):
    text = open(os.path.join(source, "meson.build")).read()
    table = re.search(r"^rooms = \{\n(.*?)^\}", text, re.M | re.S).group(1)
    return re.findall(r"^ *'([^']+)':", table, re.M)  # lowest first


def tracked(source, *patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=source,
                         capture_output=True, text=True, check=True).stdout
    return [f for f in out.split() if os.path.exists(os.path.join(source, f))]


def includes(source, rooms):
    level = {room: n for n, room in enumerate(rooms + [LIBRARY, "tools"])}
    for file in tracked(source, "*.c", "*.h"):
        room = os.path.dirname(file)
        if room not in level:
            continue
        text = open(os.path.join(source, file)).read()
        for header in re.findall(r'^#include "([^"]+)"', text, re.M):
            above = os.path.dirname(header) or room
            if room == LIBRARY and above != LIBRARY and header != WIRE:
                yield f"{file} includes {header}: what programs link needs nothing of the daemon's"
            if header != "config.h" and level.get(above, 99) > level[room]:
                yield f"{file} includes {header}, which is above it"
        for header in re.findall(r"^#include <([^>]+)>", text, re.M):
            for pattern, may in LIBRARIES.items():
                if re.fullmatch(pattern, header) and room not in may:
                    yield f"{file} includes <{header}>, which only {' and '.join(may)} may"


def prototypes(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S).replace("\\\n", "")
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    outside, depth = "", 0
    for c in text:
        depth += c == "{"
        if not depth:
            outside += c
        if c == "}":
            depth -= 1
            outside += ";" if not depth else ""
    return sum(1 for s in outside.split(";")
               if re.search(r"\w\s*\((?!\*)", s) and not re.search(r"\b(typedef|static)\b", s))


def headers(source, rooms):
    for file in tracked(source, "*.h"):
        if os.path.dirname(file) in rooms + ["tools"]:
            n = prototypes(open(os.path.join(source, file)).read())
            if n > MOST_PROTOTYPES:
                yield f"{file} has {n} functions: at most {MOST_PROTOTYPES}"


def calls(build, rooms):
    """{file: {files that it calls}}, as "room/name"."""
    defined, wanted = {}, {}
    for room in rooms:
        library = os.path.join(build, "lib" + re.sub(r"\W", "_", room) + ".a")
        out = subprocess.run(["nm", "-A", library], capture_output=True, text=True, check=True).stdout
        prefix = re.sub(r"\W", "_", room) + "_"
        for line in out.splitlines():
            m = re.match(r".*?([^/:]+)\.c\.o: *[0-9a-f]* +(\w) (\S+)$", line)
            file = room + "/" + m.group(1).removeprefix(prefix)
            wanted.setdefault(file, set())
            if m.group(2) == "U":
                wanted[file].add(m.group(3))
            elif m.group(2).isupper():
                defined[m.group(3)] = file
    return {file: {defined[s] for s in symbols if defined.get(s, file) != file}
            for file, symbols in wanted.items()}


def circles(graph):
    """Tarjan's strongly connected components of more than one file."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for v in graph:
        if v not in index:
            visit(v)
    return [c for c in found if len(c) > 1]


def idea_of(file):
    room, name = os.path.split(file)
    for idea in IDEAS.get(room, []):
        if any(name == p or name.startswith(p + "_") for p in idea):
            return room, idea[0]
    return room, name


def in_circles(build, rooms):
    for circle in circles(calls(build, rooms)):
        if len({idea_of(file) for file in circle}) > 1:
            yield "call each other in a circle: " + " ".join(circle)


def main():
    source, build = sys.argv[1:]
    rooms = rooms_of(source)
    bad = [*includes(source, rooms), *headers(source, rooms), *in_circles(build, rooms)]
    print("\n".join(bad) if bad else f"{len(rooms)} rooms: calls go one way")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()

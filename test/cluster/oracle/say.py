"""Operations and what went wrong, for people."""

from player import data_of

PIECE = 8


def target(op, prefix=""):
    if prefix + "slot" in op:
        return f"slot {op[prefix + 'slot']}"
    return repr(op[prefix + "path"]) + (f" opened {op['flags']}" if op.get("flags") and not prefix else "")


def say(op):
    """One line: the node, and what it does."""
    name = op["op"]
    who = f"node {op['node']}: " if "node" in op else ""
    if name == "outside":
        return "on the PFS: " + say(op["do"])
    if name == "look":
        parts = [f"{p!r}: {' '.join(a)}" for p, a in op["paths"].items()]
        parts += [f"slot {s}: {' '.join(a)}" for s, a in op["slots"].items()]
        return f"{who}look at {'; '.join(parts)}"
    if name in ("rename", "link"):
        return f"{who}{name} {op['path']!r} {op['to']!r}" + (f" {op['flags']}" if op.get("flags") else "")
    if name in ("open", "reopen"):
        of = repr(op["path"]) if name == "open" else f"/proc/self/fd of slot {op['from_slot']}"
        return f"{who}slot {op['slot']} = open {of} {op['flags']}"
    words = [target(op, "from_") + " to"] if name == "copy" else []
    if "slot" in op or "path" in op:
        words.append(target(op))
    words += [f"{k} {op[k]}" for k in ("kind", "how", "what", "from_at", "at", "len", "size", "text", "name", "value",
                                       "owner", "mtime", "seconds", "paths", "start") if k in op]
    if "mode" in op:
        words.append(f"mode {op['mode']:o}")
    if "n" in op:
        words.append(f"(bytes #{op['n']})")
    return f"{who}{name} {' '.join(words)}"


def program(failure):
    """The operations up to the one that failed, and what was expected and got."""
    lines = [f"  {i:4} {say(op)}" for i, op in enumerate(failure.ops[:failure.index + 1])]
    lines += [f"       WRONG [{d.key}] {d}" for d in failure.deviations[:6]]
    return "\n".join(lines)


def which_bytes(expected, got, ops):
    """Where the first difference is, and of which operation the bytes are."""
    if got is None or expected == got:
        return ""
    common = min(len(expected), len(got))
    at = next((i for i in range(common) if expected[i] != got[i]), common)
    wrong = sum(a != b for a, b in zip(expected[at:common], got[at:common]))
    return (f"; the first wrong one is {at}: {origin(got, at, ops)}, expected {origin(expected, at, ops)}; "
            f"{wrong} of {common} differ")


def origin(data, at, ops):
    piece = data[at:at + PIECE]
    if not piece:
        return "nothing"
    if not any(piece):
        end = at
        while end < len(data) and data[end] == 0:
            end += 1
        return f"{end - at} zeros"
    for op in ops:
        op = op.get("do", op)
        if "n" in op and "len" in op or op["op"] == "locked":
            where = data_of(op["n"], op.get("len", 64)).find(piece)
            if where >= 0:
                return f"byte {where} of #{op['n']}"
    return f"{piece.hex()} of nothing that was written"

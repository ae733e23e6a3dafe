# shellcheck shell=bash
#
# One program that holds descriptors for a test, for scripts that ask what each call says: "says ANSWER COMMAND...".  A unit is
# 64 KiB, what one node borrows of a shared file.
#
#   open KEY PATH          write KEY UNIT N LETTER    N units of a letter
#   sync KEY, close KEY    small KEY UNIT LETTER      100 bytes of it
#                          read KEY UNIT              a letter, "zero", or "end"
#
# An answer is the call's result, or the error's name.

start_descriptors() {
    cat >"$W/descriptors.py" <<'P'
import errno, os, sys

UNIT = 65536


def letter(fd, at):
    byte = os.pread(fd, 1, at)
    return "end" if not byte else "zero" if byte == b"\0" else byte.decode()


def do(what, key, args):
    if what == "open":
        fds[key] = os.open(args[0], os.O_RDWR | os.O_CREAT)
        return 0
    fd = fds[key]
    if what == "write":
        return os.pwrite(fd, args[2].encode() * (int(args[1]) * UNIT), int(args[0]) * UNIT)
    if what == "small":
        return os.pwrite(fd, args[1].encode() * 100, int(args[0]) * UNIT)
    if what == "read":
        return letter(fd, int(args[0]) * UNIT)
    return {"sync": os.fsync, "close": os.close}[what](fd) or 0


fds = {}
for line in sys.stdin:
    what, key, *args = line.split()
    try:
        said = do(what, key, args)
    except OSError as e:
        said = errno.errorcode[e.errno]
    print(said, flush=True)
P
    coproc DESCRIPTORS { exec python3 "$W/descriptors.py"; }
}

says() { # ANSWER COMMAND...
    local answer
    echo "${*:2}" >&"${DESCRIPTORS[1]}"
    read -r answer <&"${DESCRIPTORS[0]}"
    check_equal "${*:2}" "$answer" "$1"
}

members_are() { # NODE "NAME..."
    [ "$(status_of "$1" '[.members[].name] | sort | join(" ")')" = "$2" ]
}

# Nodes a, b and c are in one view.
all_three() {
    local n
    for n in a b c; do
        wait_for 60 members_are $n "a b c" || fail "$n is not in one view with the others"
    done
}

# Starts the nodes and the program.
start_three() {
    local n
    for n in a b c; do start_node $n "$PFS" --flush-wait 3600 --no-supervise; done
    all_three
    start_descriptors
}

is_absent() { # NODE THAT_SAYS_SO
    [ "$(status_of "$2" "[.absent[] | select(.name == \"$1\")] | length")" = 1 ]
}

# Closes what is open yet.
end_descriptors() {
    local pid=$DESCRIPTORS_PID
    eval "exec ${DESCRIPTORS[1]}>&-"
    wait "$pid" 2>/dev/null || true
}

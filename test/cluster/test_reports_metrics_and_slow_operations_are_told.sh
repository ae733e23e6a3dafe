#!/usr/bin/env bash
# eddyfs --report, --metrics and --slow: a report of each node, bounded and private, in which the numbers are right; a page of it that
# hides no text and loads nothing; metrics over HTTP and a unix socket; slow operations in the log, with where they waited.
# timeout: 180
# sanitize-long
. "$(dirname "$0")/lib.sh"
requires fuse cmd jq cmd curl cmd python3

mkdir "$W/reports"
head -c 5000000 /dev/urandom >"$PFS/big"
name='d & <script>alert(1)<b>'
mkdir "$PFS/$name"
echo x >"$PFS/$name/f"
start_faultfs a
start_faultfs b
start_node a "$W/pfs-a" --no-passthrough --report "$W/reports" --slow 3000 --metrics "unix:$W/metrics.sock" --log "$W/a-eddyfs.log"
start_node b "$W/pfs-b" --no-passthrough --report "$W/reports"

cat "$W/mnt-a/big" "$W/mnt-b/big" >/dev/null
head -c 2000000 /dev/urandom >"$W/mnt-b/new"
grep -q 'slow: ' "$W/a-eddyfs.log" && fail "a fast operation is called slow"
fault=$(tell_faultfs a hang open 'path=*/f')
cat "$W/mnt-a/$name/f" >/dev/null &
reader=$!
wait_for 20 fault_waits a "$fault" || fail "no open waits for the PFS"
sleep 3.5 # so slow is it
tell_faultfs a clear "$fault" >/dev/null
wait "$reader" || fail "the file cannot be read"
wait_for 10 grep -q 'slow: open took .*PFS' "$W/a-eddyfs.log" || fail "a slow open is not logged: $(grep slow "$W/a-eddyfs.log")"

# ---- metrics ----
check_equal "mode of the socket" "$(stat -c %a "$W/metrics.sock")" 600
curl -sS --max-time 10 --unix-socket "$W/metrics.sock" http://x/metrics >"$W/metrics" || fail "no metrics over the socket"
grep -q '^eddyfs_read_pfs_bytes_total{node="a",session="test"} [0-9]' "$W/metrics" || fail "the counter is not there"
if command -v promtool >"$W/which"; then
    promtool check metrics <"$W/metrics" >"$W/said" 2>&1 || fail "promtool: $(cat "$W/said")"
    eddy metrics "$W/mnt-a" | promtool check metrics >"$W/said" 2>&1 || fail "promtool, of eddy metrics: $(cat "$W/said")"
fi
code=$(curl -sS --max-time 10 --unix-socket "$W/metrics.sock" -o "$W/else" -w '%{http_code}' http://x/else)
check_equal "code of another path" "$code" 404
curl -sS --max-time 10 --unix-socket "$W/metrics.sock" -X POST -d x http://x/metrics >"$W/else" 2>&1 && fail "POST is answered"
# Bytes that are no request, many that are slow: the daemon stays, and answers others.
python3 - "$W/metrics.sock" <<'PY'
import os, socket, sys
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    return s
for junk in (os.urandom(4000), b"GET /metrics HTTP/9.9\r\n" + b"a: b\r\n" * 5000, b"\0" * 100):
    s = connect()
    try:
        s.sendall(junk)
        s.shutdown(socket.SHUT_WR)
        s.recv(100)
    except OSError:
        pass
slow = [connect() for _ in range(10)]
for s in slow:
    s.sendall(b"GET /met")
s = connect()
s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
assert s.recv(12).endswith(b"200"), "no answer beside slow ones"
PY

code=0
"$EDDY_BUILD/eddyfs" --metrics 127.0.0.1:99999 "$PFS" "$W" 2>"$W/err" || code=$?
check_equal "exit code of a wrong address" "$code" 2
code=0
"$EDDY_BUILD/eddyfs" --report reports "$PFS" "$W" 2>"$W/err" || code=$?
check_equal "exit code of a relative directory" "$code" 2

mkdir "$W/mnt-x"
code=0
"$EDDY_BUILD/eddyfs" -f --report "$W/none" --cache-dir "$W/cache-x" --listen 127.0.0.1 "$PFS" "$W/mnt-x" 2>"$W/err" || code=$?
check_equal "exit code of a directory that is not there" "$code" 1
grep -q "no report can be written there: No such file" "$W/err" || fail "it is not said: $(cat "$W/err")"

# ---- reports ----
stop_node a
stop_node b
[ ! -e "$W/metrics.sock" ] || fail "the socket stays"
check_equal "reports" "$(find "$W/reports" -type f | wc -l)" 2
check_equal "their modes" "$(stat -c %a "$W"/reports/* | sort -u)" 600
a=$(echo "$W"/reports/eddyfs-test-a-*.json) b=$(echo "$W"/reports/eddyfs-test-b-*.json)
jq -e '.figures | .read_local_bytes + .read_peer_bytes + .read_pfs_bytes == 5000002' "$a" >/dev/null || fail "bytes that a read"
jq -e '.figures.written_bytes == 2000000 and .figures.flushed_bytes == 2000000 and .not_on_pfs_count == 0' "$b" >/dev/null || fail "bytes that b wrote"
jq -e '.history.series | [.[] | length] | unique | length == 1 and .[0] >= 2' "$b" >/dev/null || fail "series of one length"
jq -e '.history.series.written_bytes | .[-1] == 2000000 and .[0] == 0' "$b" >/dev/null || fail "the series' ends"
jq -e --arg n "$name" '.slowest | any(.operation == "open" and .path == ($n + "/f") and .ms >= 3490 and .waited_ms["the PFS"] >= 3490)
        and (map(.ms) | . == (sort | reverse)) and all(.ms + 5 >= ([.waited_ms[]] | add // 0))' "$a" >/dev/null ||
    fail "the slowest operations: $(jq -c .slowest "$a")"

eddy report "$W/reports" >"$W/text"
grep -q 'session test, 2 reports' "$W/text" && grep -q 'everything is on the PFS' "$W/text" || fail "the text: $(cat "$W/text")"
eddy report --html "$W/page.html" "$W/reports"
check_equal "the page's mode" "$(stat -c %a "$W/page.html")" 600
python3 - "$W/page.html" <<'PY'
import re, sys
from html.parser import HTMLParser
text = open(sys.argv[1]).read()
class Page(HTMLParser):
    open_tags, seen, words = [], set(), []
    void = {"meta", "br", "rect", "line", "tr", "td", "th"}
    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        for key, value in attrs:
            assert key not in ("src", "href", "onload"), (tag, key, value)
        if tag not in self.void:
            self.open_tags.append(tag)
    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open_tags.pop() == tag, tag
    def handle_data(self, data):
        self.words.append(data)
p = Page()
p.feed(text)
assert not p.open_tags, p.open_tags
assert "script" not in p.seen and "img" not in p.seen, p.seen
assert any("<script>alert(1)<b>/f" in w for w in p.words), "the slow file is not named"
assert len(re.findall("<svg", text)) == 5, "five pictures"
assert "nan" not in text.lower().split("<svg", 1)[1].split("</svg>")[0], "numbers that are none"
PY

# Another user's report tells a terminal nothing.
mkdir "$W/theirs"
jq '.session = "evil" | .node = "\u001b[2Jx" | .passthrough_why = "\u001b]0;x\u0007"' "$b" >"$W/theirs/eddyfs-evil-b-1.json"
eddy report "$W/theirs" >"$W/text"
grep -q $'[\033\007]' "$W/text" && fail "escapes of a report reach the terminal"
jq -c '.session = "later"' "$b" | sed 's/"began":[0-9]*/"began":9000000000000000000/' >"$W/later.json"
eddy report "$W/later.json" >"$W/later.txt"
grep -q 'session later, 1 report, from ?' "$W/later.txt" || fail "a time that is none: $(cat "$W/later.txt")"
eddy report --html "$W/later.html" "$W/later.json"
grep -q 'session evil' "$W/text" || fail "the report of another user: $(cat "$W/text")"

# What is no report is refused, and files of other sessions are left out.
echo '{"format": "something"}' >"$W/bad.json"
code=0
eddy report "$W/bad.json" 2>"$W/err" || code=$?
check_equal "exit code of what is no report" "$code" 1
grep -q 'is not a report' "$W/err" || fail "it is not said: $(cat "$W/err")"
jq '.session = "other" | .ended += 100' "$a" >"$W/reports/eddyfs-other-a-1.json"
check_equal "the session that ended last" "$(eddy report "$W/reports" | head -n 1 | cut -d, -f1)" "session other"
check_equal "a session that is named" "$(eddy report --session test "$W/reports" | head -n 1 | cut -d, -f1-2)" "session test, 2 reports"
code=0
eddy report --session none "$W/reports" 2>"$W/err" || code=$?
check_equal "exit code without a report" "$code" 1

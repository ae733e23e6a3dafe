"""names.py SOURCE W: looks for what the pages for users name (W/pages): messages in the sources, options of eddyfs (W/options), commands of eddy
(W/commands) and their options (W/help), links. Prints what is not there, and ends with 1 if there is any."""
import os
import re
import sys

SOURCE, W = sys.argv[1:]
ROOMS = ["fs", "flush", "placement", "transport", "tools"]
OTHERS = set("--bind --checkpoints --cpus-per-task --data --dependency --device --fakeroot --fusemount --gpus-per-node --ignore-fail-on-non-empty "
             "--map-root-user --mem --mount --nodes --ntasks --ntasks-per-node --overlap --propagate --rm --userns --volume "
             "--version --help".split())  # of Slurm, Apptainer, Podman, unshare, rmdir, the examples' programs; and those that all have
missing = []


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def lines_of(name):
    return text_of(os.path.join(W, name)).splitlines()


def sources():
    """All texts of the sources, with what the compiler joins joined."""
    texts = []
    for room in ROOMS:
        for directory, _, names in os.walk(os.path.join(SOURCE, room)):
            texts += [text_of(os.path.join(directory, name)) for name in names if name.endswith((".c", ".h"))]
    whole = "\n".join(texts)
    for name, value in re.findall(r'^#define (\w+)\s+"([^"\n]*)"', whole, re.M):
        whole = re.sub(rf'" {name} "|" {name}\b|\b{name} "', value, whole)
    return re.sub(r'"\s*\n\s*"', "", whole).replace('\\"', '"')


def check_messages(page, code):
    """The first column of the tables of messages: the pieces between its "…" are in this order in one line of the sources."""
    rows = [line.split("|")[1] for line in text_of(page).splitlines() if line.startswith("| `")]
    for message in (m for row in rows for m in re.findall(r"`([^`]*)`", row)):
        pieces = [re.escape(piece) for piece in message.split("…") if piece]
        if not re.search("[^\n]*?".join(pieces), code):
            missing.append(f"{page}: no message is like: {message}")
    if not rows:
        missing.append(f"{page}: no messages")


def is_option(name):
    return name[2:] in lines_of("options") or name in OTHERS or re.search(rf"{name}\b", "\n".join(lines_of("help")))


def check_options(page, text):
    """In examples and in `code`: --options of eddyfs and eddy, and "eddy COMMAND"."""
    code = re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S) + re.findall(r"`([^`\n]+)`", text)
    for piece in code:
        missing.extend(f"{page}: no option {name}" for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", piece) if not is_option(name))
        missing.extend(f"{page}: no command: eddy {name}" for name in re.findall(r"\beddy ([a-z]+)", piece) if name not in lines_of("commands"))


def anchors(path):
    heads = re.findall(r"^#+ (.*)$", text_of(path), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def check_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(path):
            missing.append(f"{page}: no file: {target}")
        elif anchor and anchor not in anchors(path):
            missing.append(f"{page}: no section: {target}")


for file in lines_of("pages"):
    check_options(file, text_of(file))
for file in [os.path.join(SOURCE, "README.md")] + [os.path.join(d, n) for d, _, names in os.walk(os.path.join(SOURCE, "docs")) for n in names]:
    if file.endswith(".md"):
        check_links(file, text_of(file))
check_messages(os.path.join(SOURCE, "docs/troubleshooting.md"), sources())
print("\n".join(missing))
sys.exit(1 if missing else 0)

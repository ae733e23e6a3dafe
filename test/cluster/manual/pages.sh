# shellcheck shell=bash
#
# The pages for users (docs/getting-started.md and so on): which they are, and their examples. A block of such a page begins with a mark in
# the line before it:
#
#   <!-- example NAME.sh -->                   run, in the order of the page, in one shell
#   <!-- example NAME.sh: exit code 3 -->      run, in a shell of its own, and ends so
#   <!-- example NAME.sbatch -->               a job script: run with an application that ends well, and with one that fails
#
# There is no other kind of block.

SOURCE=$(cd "$(dirname "$SCRIPT")/../.." && pwd)
# shellcheck disable=SC2034 # for the tests
PAGES=(getting-started tuning containers troubleshooting faq jobs/pytorch jobs/mpi-checkpoints jobs/python-environments jobs/make)

page_file() {
    echo "$SOURCE/docs/$1.md"
}

# Blocks of a page that no test would run: those without a mark, and those that are indented.
blocks_not_run() {
    awk '/^```/ { if (inside) { inside = 0; next }
            inside = 1
            if ($0 != "```bash" || before !~ /^<!-- example [a-z-]+\.(sh(: exit code [0-9]+)?|sbatch) -->$/) print FNR ": " before " " $0 }
        !inside && /^(    |\t)/ { print FNR ": " $0 }
        { before = $0 }' "$(page_file "$1")"
}

# here: the directories of the examples are this test's.
here() {
    # shellcheck disable=SC2016 # the example's own variable
    sed -e "s|/lustre/project/data|$PFS|g" -e "s|/mnt/data|$W/mnt-a|g" -e "s|/local/|$W/local/|g" -e 's|/tmp/\$USER|'"$W/tmp/"'$USER|g'
}

job_scripts() {
    sed -n 's/^<!-- example \(.*\.sbatch\) -->$/\1/p' "$(page_file "$1")"
}

# example PAGE NAME: as it is in the page
example() {
    awk -v mark="<!-- example $2 -->" '$0 == mark { found = 1; next }
        found && /^```/ { if (inside) exit; inside = 1; next }
        inside' "$(page_file "$1")"
}

# shell_of PAGE: all its examples of the shell, as one script
shell_of() {
    awk '/^<!-- example .*\.sh/ { code = /: exit code/ ? $(NF - 1) : 0; mark = $0; next }
        mark && /^```/ && !inside { print "echo \"" mark "\""; if (code) print "code=0; ("; inside = 1; next }
        inside && /^```/ { if (code) print ") || code=$?; [ $code = " code " ]"; inside = 0; mark = ""; next }
        inside' "$(page_file "$1")"
}

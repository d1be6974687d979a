#!/bin/sh
# Compares two servers with `pgdyno ab`, for the action (action.yml) and the template (gitlab.yml) in this directory.
#
# PGDYNO_BASE, PGDYNO_HEAD  the servers, as for `pgdyno ab`
# PGDYNO_ARGUMENTS          further arguments, separated by spaces (default: -S)
# PGDYNO_FAIL               the gate (default: tps < -5%)
# PGDYNO_MAX_TIME           time for the measurement (default: 10min)
# PGDYNO_UNDECIDED          what it is if the time was too short: neutral (default), pass or fail
# PGDYNO_RESULTS            directory of the results (default: pgdyno-results)
set -eu

results=${PGDYNO_RESULTS:-pgdyno-results}
mkdir -p "$results"
gate=${PGDYNO_FAIL:-tps < -5%}
case ${PGDYNO_UNDECIDED:-neutral} in
neutral) undecided= ;;
pass | fail) undecided="--undecided $PGDYNO_UNDECIDED" ;;
*)
    echo "PGDYNO_UNDECIDED is \"$PGDYNO_UNDECIDED\": expected neutral, pass or fail" >&2
    exit 2
    ;;
esac

arguments=${PGDYNO_ARGUMENTS:--S}
case " $arguments " in
# Counted trials are as many as they are.
*" --count "* | *" --count=only "*) time= ;;
# The time is kept: no second opinion by counting.
*) time="--count=never --max-time ${PGDYNO_MAX_TIME:-10min}" ;;
esac

code=0
# The arguments are words.
# shellcheck disable=SC2086
pgdyno ab "$PGDYNO_BASE" "$PGDYNO_HEAD" $arguments --fail "$gate" $undecided $time --store "$results/store" \
    --output "junit=$results/junit.xml" --output "markdown=$results/summary.md" --output "json=$results/result.json" ||
    code=$?

if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -f "$results/summary.md" ]; then
    cat "$results/summary.md" >>"$GITHUB_STEP_SUMMARY"
fi
[ ! -d "$results/store" ] || pgdyno report --store "$results/store" -o "$results/report.html" || true

# Lines that GitHub shows at the top of the run; other systems have them in the log.
case $code in
0) ;;
3) echo "::error title=pgdyno::the gate $gate is hit: see summary.md and report.html of $results" ;;
6)
    # Not decided is not failed.
    echo "::notice title=pgdyno::not decided within the time: the machine is too noisy for the gate $gate"
    code=0
    ;;
*) echo "::error title=pgdyno::no result (exit code $code)" ;;
esac
exit "$code"

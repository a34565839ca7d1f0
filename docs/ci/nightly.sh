#!/usr/bin/env bash
# One nightly run of the suite, for cron on a login node; see docs/nightly.md. Usage: nightly.sh CHECKOUT [OPTION...]
# The options go to `python -m perf.cluster`: --site=FILE --stack=NAME --profile=quick ...
set -euo pipefail

checkout=${1:?"usage: nightly.sh CHECKOUT [OPTION...]"}
shift
cd "$checkout"

# cron starts the next run whether or not the last one has ended. The lock goes with this process, however that ends.
exec 9>.nightly.lock
if ! flock --nonblock 9; then
    echo "stackproof: last night's run is still going on in $checkout; this one is left out" >&2
    exit 75
fi

# cron has hardly a PATH, and no modules: those are the stack's, and the site file loads them.
status=0
.nox/driver/bin/python -E -s -m perf.cluster "$@" >nightly.log 2>&1 9>&- || status=$?

case $status in
0) ;; # Nothing to say: cron mails what is printed.
10) ;; # The noise was too large for some question. The report says how many launches would have answered it.
*)
    echo "stackproof ended with status $status in $checkout (docs/verdicts.md): results/latest/report.html"
    tail --lines=40 nightly.log
    ;;
esac
exit "$status"

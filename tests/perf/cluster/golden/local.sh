#!/bin/bash
# stackproof: job 2node-4gpu of run 20261128T064136Z-a1b2c3. Submitted with:
#   bash /project/stackproof/results/20261128T064136Z-a1b2c3/jobs/2node-4gpu/job.sh

folder=/project/stackproof/results/20261128T064136Z-a1b2c3/jobs/2node-4gpu
caught=
pytest=

# shellcheck disable=SC2317,SC2329 # traps call these
finish() {
    local status=$?
    trap - EXIT
    printf '%s %s %s\n' "$status" "$(date +%s)" "$caught" >"$folder/.exit_code" &&
        mv -f -- "$folder/.exit_code" "$folder/exit_code"
    case "$status" in
        0|1|10|11|12) exit 0 ;;
    esac
    exit "$status"
}
# shellcheck disable=SC2317,SC2329
near_limit() {
    caught=USR1
    if [ -n "$pytest" ]; then kill -TERM "$pytest" 2>/dev/null; fi
}

# A job that is started again (requeued) would mix its measurements with those of its first start.
if ! mkdir -- "$folder/started"; then
    echo "stackproof: this job was started before; it does not measure twice into one folder." >&2
    date +%s >"$folder/started_again"
    exit 75
fi
trap finish EXIT
trap near_limit USR1
# These reach every process of the job, so pytest has them too: passed on, they would count as two.
trap 'caught=TERM' TERM
trap 'caught=INT' INT
date +%s >"$folder/started/at"
hostname >"$folder/started/host"

cd -- '/project/stack proof' || exit 74
# Ignored in what it starts: LSF sends the warning to every process of the job, and it would end them.
(
    trap '' USR1
    exec /project/stackproof/.nox/driver/bin/python \
        -E \
        -s \
        -m \
        pytest \
        @/project/stackproof/results/20261128T064136Z-a1b2c3/jobs/2node-4gpu/nodeids.txt \
        --site=/project/stackproof/results/20261128T064136Z-a1b2c3/site.toml \
        --stack=conda
) &
pytest=$!
# A signal ends `wait`, not pytest: wait until pytest itself has ended. 127: there is nothing to wait for.
status=127
while :; do
    wait "$pytest"
    code=$?
    if [ "$code" -ne 127 ]; then status=$code; fi
    kill -0 "$pytest" 2>/dev/null || break
done
wait "$pytest" 2>/dev/null
code=$?
if [ "$code" -ne 127 ]; then status=$code; fi
exit "$status"

#!/bin/bash
# stackproof: job 1node-1gpu of run 20261128T202736Z-a7783c. Submitted with:
#   sbatch --parsable --job-name=20261128T202736Z-a7783c.1node-1gpu --output=results/slurm/gpus-1/20261128T202736Z-a7783c/jobs/1node-1gpu/stdout --chdir=results/slurm/gpus-1/20261128T202736Z-a7783c/jobs/1node-1gpu --nodes=1 --ntasks-per-node=1 --cpus-per-task=16 --gpus-per-node=1 --time=12 --no-requeue --signal=B:USR1@90 --export=ALL results/slurm/gpus-1/20261128T202736Z-a7783c/jobs/1node-1gpu/job.sh

folder=results/slurm/gpus-1/20261128T202736Z-a7783c/jobs/1node-1gpu
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

cd -- . || exit 74
# Ignored in what it starts: LSF sends the warning to every process of the job, and it would end them.
(
    trap '' USR1
    exec /driver/bin/python \
        -E \
        -s \
        -m \
        pytest \
        @results/slurm/gpus-1/20261128T202736Z-a7783c/jobs/1node-1gpu/nodeids.txt \
        --site=results/slurm/gpus-1/20261128T202736Z-a7783c/site.toml \
        --stack=current \
        --job-folder=results/slurm/gpus-1/20261128T202736Z-a7783c/jobs/1node-1gpu \
        --junit-xml=results/slurm/gpus-1/20261128T202736Z-a7783c/jobs/1node-1gpu/junit.xml \
        -p \
        no:cacheprovider \
        --profile=quick \
        --device=cuda \
        --launches=1 \
        --share-node \
        -k \
        'mnist_cnn and world_size_1'
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

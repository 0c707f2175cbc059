#!/bin/bash
# What a job of the lab does: job.sh sleep SECONDS | exit CODE | signal NAME | stepfail CODE | third | twice SECONDS | nodes
# Each run writes down where and when it ran: the tests' own record, which owes nothing to Slurm's accounting.
note() { printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$SLURM_JOB_ID" "${SLURM_RESTART_COUNT:-0}" "$(date +%s.%N)" \
    "${SLURMD_NODENAME}" "${SLURM_JOB_GPUS-}" >>ran.tsv; }
if [ "$1" = noted ]; then note node; exit; fi
note start
trap 'note end' EXIT
case $1 in
    sleep) sleep "$2" ;;
    exit) exit "$2" ;;
    signal) trap - EXIT; kill -"$2" $$; sleep 5 ;;
    # srun returns before slurmctld hears of the step's end: a job that is over by then has no derived exit code
    stepfail) srun --ntasks=1 bash -c "exit $2"; sleep 2; exit 0 ;;
    third) sleep 1; [ $((SLURM_ARRAY_TASK_ID % 3)) = 0 ] && exit 7; exit 0 ;;
    twice) [ "${SLURM_RESTART_COUNT:-0}" -ge 1 ] && sleep 3 && exit 0; sleep "$2"; exit 99 ;;
    nodes) srun --ntasks-per-node=1 "$0" noted ;;
esac

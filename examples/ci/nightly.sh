#!/usr/bin/env bash
# A report a night of a Slurm cluster's last days, for cron or systemd: $GPUCTL_STATE/reports/YYYY-MM-DD/index.html, the
# newest also under reports/latest. Exits with 1 where a check failed, after all is written; with gpuctl's own code
# where something else did. Runs as a user who may see everyone's jobs (in Slurm, an operator where PrivateData is set).
set -euo pipefail
umask 027 # reports name users: for the user and the group only

state=${GPUCTL_STATE:-/var/lib/gpuctl}
days=${GPUCTL_DAYS:-28}
keep=${GPUCTL_KEEP_DAYS:-60}

mkdir -p "$state/reports"
cd "$state"
# a run that takes longer than a day must not meet the next one
exec 9>nightly.lock
flock --nonblock 9 || { echo "nightly.sh: another run holds $state/nightly.lock" >&2; exit 4; }

since=$(date -u -d "$days days ago" +%F)
today=$(date -u +%F)
folder=reports/$today
mkdir -p "$folder"

# The store is made anew, so that it holds these days and no others. What Slurm said stays in site.sacct/: a day that is
# over is asked for once, not every night.
rm -f site.duckdb
gpuctl --quiet ingest --from sacct --since "$since" --db site.duckdb --json >"$folder/loaded.json"
gpuctl --quiet analyze site.duckdb --json --output "$folder/results.json"

checks=(
  --fail-if "overview.jobs < 1" # an empty accounting is a fault of this script, not a quiet night
  --fail-if "queueing.p95_wait_h > 24"
  --fail-if "failures.lost_gpu_hours_pct > 50"
)
if [ -f baseline.json ]; then
  checks+=(--baseline baseline.json --fail-if "queueing.p95_wait_h > baseline + 1")
fi
verdict=0
gpuctl --quiet report "$folder/results.json" "${checks[@]}" --json --output "$folder/metrics.json" \
  --html "$folder/index.html" --markdown "$folder/report.md" --junit "$folder/checks.xml" || verdict=$?
ln -sfn "$today" reports/latest

# Only a night that passed: else a bad one would be the measure of the next.
if [ "$verdict" = 0 ]; then
  cp "$folder/results.json" baseline.json.part
  mv baseline.json.part baseline.json
fi
find reports -mindepth 1 -maxdepth 1 -type d -name '20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]' -mtime "+$keep" -exec rm -r {} +
find site.sacct -type f -name 'sacct-*.txt.zst' -mtime "+$((days + 2))" -delete
exit "$verdict"

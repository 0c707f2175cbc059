-- Attempts whose GPUs Slurm's accounting cannot state, and of these those whose GPUs no other source states either.
SELECT count(*) AS untracked, count(*) FILTER (gpus IS NULL) AS unknown FROM base_attempts WHERE list_contains(quirks, 'gpus_not_tracked')

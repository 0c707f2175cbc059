-- GPU-seconds as sources total them themselves, beside those of the same attempts here: one row per attempt, or per job where the total is
-- of a whole job. Only what is over is compared. A total is compared over its own definition: Slurm's Elapsed begins at Start.
SELECT 'Slurm: (Elapsed + Suspended) x GPUs of AllocTRES' AS total, a.job, a.attempt, raw.stated_gpu_s,
       a.gpus * (a.held_until_c - a.start_c) AS gpu_s
FROM base_attempts AS a JOIN attempts AS raw ON raw.cluster = $cluster AND raw.job = a.job AND raw.attempt = a.attempt
WHERE raw.stated_gpu_s IS NOT NULL AND a.start_ts IS NOT NULL AND a.end_ts IS NOT NULL

-- GPU-seconds as sources total them themselves, beside those of the same attempts here: one row per attempt, or per job where the total is
-- of a whole job. Only what is over is compared. A total is compared over its own definition: Slurm's Elapsed begins at Start.
SELECT 'Slurm: (Elapsed + Suspended) x GPUs of AllocTRES' AS total, a.job, a.attempt, raw.stated_gpu_s,
       a.gpus * (a.held_until_c - a.start_c) AS gpu_s
FROM base_attempts AS a JOIN attempts AS raw ON raw.cluster = $cluster AND raw.job = a.job AND raw.attempt = a.attempt
WHERE raw.stated_gpu_s IS NOT NULL AND a.start_ts IS NOT NULL AND a.end_ts IS NOT NULL
UNION ALL
-- the ResourceManager adds up whole seconds of each container, and forgets what it had counted when it restarts
SELECT 'YARN: GPU-seconds of the ResourceManager' AS total, f.job, NULL AS attempt, f.stated_gpu_s, h.gpu_s
FROM (SELECT job, max(gpu_seconds) AS stated_gpu_s FROM yarn_facts WHERE cluster = $cluster AND gpu_seconds IS NOT NULL GROUP BY job) AS f
JOIN (SELECT job, sum(gpu_s)::DOUBLE AS gpu_s FROM unfiltered_held WHERE gpu_s IS NOT NULL GROUP BY job) AS h USING (job)
SEMI JOIN (FROM base_jobs WHERE state NOT IN ('pending', 'running')) USING (job)

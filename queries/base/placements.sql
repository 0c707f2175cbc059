-- What each attempt held on each node when all of its gang stood, and from when to when. Of those that are by_container, base_holdings tells when.
SELECT a.job, a.attempt, a.number, p.machine, p.gpus, p.gpu_indices, p.estimated, a.start_ts, a.held_from_ts, a.held_until_ts, a.start_c, a.held_from_c, a.held_until_c,
       a.by_container, a.gpu_type AS held_gpu_type
FROM placements AS p JOIN base_attempts AS a USING (job, attempt)
WHERE p.cluster = $cluster AND a.start_ts IS NOT NULL
ORDER BY a.number, p.machine

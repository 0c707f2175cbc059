-- GPUs in use on a node as Slurm said at instants (sinfo), within the time that the job log tells of. Answers of YARN
-- carry no time of their own, only when each node last reported.
SELECT s.machine, epoch(timezone(c.zone, s.ts)) AS at_c, s.gpus_used
FROM machine_samples AS s
CROSS JOIN (SELECT CASE WHEN clock = 'wall' THEN timezone ELSE 'UTC' END AS zone FROM clusters WHERE cluster = $cluster) AS c
CROSS JOIN (SELECT min(held_from_c) AS first_c, max(held_until_c) AS last_c FROM base_placements) AS log
JOIN sources ON sources.source = s.source AND sources.format LIKE 'slurm%'
WHERE s.cluster = $cluster AND s.gpus_used IS NOT NULL AND epoch(timezone(c.zone, s.ts)) BETWEEN log.first_c AND log.last_c

-- Which nodes the jobs of a queue may run on: as the site's configuration says; for partitions of Slurm, where it is not
-- loaded, those that their jobs did run on.
WITH configured AS (SELECT DISTINCT queue, machine FROM queue_machines WHERE cluster = $cluster),
slurm AS (
    SELECT 1 FROM clusters
    WHERE cluster = $cluster AND source_format LIKE 'slurm%' AND NOT EXISTS (FROM configured)
)
SELECT queue, machine, false AS inferred FROM configured
UNION ALL
SELECT DISTINCT a.queue, p.machine, true
FROM base_placements AS p JOIN base_attempts AS a USING (job, attempt)
WHERE EXISTS (FROM slurm) AND a.queue IS NOT NULL
ORDER BY ALL

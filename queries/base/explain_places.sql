-- Where the attempts of job $job ran, and with whom they shared each machine.
WITH own AS (
    SELECT p.attempt, p.machine, p.gpus, p.gpu_indices, p.estimated, p.held_from_c, p.held_until_c, m.rack, m.gpu_type, m.gpus AS machine_gpus
    FROM base_placements AS p LEFT JOIN base_machines AS m USING (machine)
    WHERE p.job = $job
),
met AS (
    SELECT o.attempt, o.machine, p.job AS other, max(p.gpus) AS gpus, sum(least(p.held_until_c, o.held_until_c) - greatest(p.held_from_c, o.held_from_c)) AS seconds
    FROM own AS o JOIN base_placements AS p ON p.machine = o.machine AND p.job <> $job AND p.held_from_c < o.held_until_c AND p.held_until_c > o.held_from_c
    GROUP BY ALL
),
beside AS (
    SELECT attempt, machine, count(*) AS others, list({job: other, gpus: gpus, seconds: seconds} ORDER BY seconds DESC, other)[1:5] AS longest
    FROM met
    GROUP BY ALL
)
SELECT o.attempt, o.machine, o.rack, o.gpus, o.gpu_indices, coalesce(o.estimated, false) AS estimated, o.gpu_type, o.machine_gpus,
       coalesce(b.others, 0) AS others, b.longest
FROM own AS o LEFT JOIN beside AS b USING (attempt, machine)
ORDER BY o.attempt, o.machine

-- Where the attempts of job $job ran, and with whom they shared each node.
WITH own AS (
    SELECT p.attempt, p.machine, p.gpus, p.gpu_indices, p.estimated, p.held_from_c, p.held_until_c, m.rack, m.gpu_type, m.gpus AS machine_gpus
    FROM (
        SELECT attempt, machine, gpus, gpu_indices, estimated, held_from_c, held_until_c FROM base_placements WHERE job = $job AND NOT by_container
        UNION ALL
        -- the most that its containers had there at once
        SELECT attempt, machine, max(held), NULL, NULL, min(held_from_c), max(held_until_c)
        FROM (SELECT h.attempt, h.machine, h.held_from_c, h.held_until_c,
                     (SELECT sum(o.gpus) FROM base_holdings AS o WHERE o.job = $job AND o.attempt = h.attempt AND o.machine = h.machine
                        AND o.held_from_c <= h.held_from_c AND o.held_until_c > h.held_from_c) AS held
              FROM base_holdings AS h WHERE h.job = $job AND h.machine IS NOT NULL)
        GROUP BY ALL
    ) AS p LEFT JOIN base_machines AS m USING (machine)
),
others AS (
    SELECT job, machine, gpus, held_from_c, held_until_c FROM base_placements WHERE job <> $job AND NOT by_container
    UNION ALL
    SELECT job, machine, gpus, held_from_c, held_until_c FROM base_holdings WHERE job <> $job
),
met AS (
    SELECT o.attempt, o.machine, p.job AS other, max(p.gpus) AS gpus, sum(least(p.held_until_c, o.held_until_c) - greatest(p.held_from_c, o.held_from_c)) AS seconds
    FROM own AS o JOIN others AS p ON p.machine = o.machine AND p.held_from_c < o.held_until_c AND p.held_until_c > o.held_from_c
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

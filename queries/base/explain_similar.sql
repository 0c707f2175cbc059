-- Jobs like job $job: of its user, name and GPUs, else of its user and GPUs, else of its queue and GPUs, the first of these that has at least five others; the 50 submitted nearest to it.
WITH own AS (SELECT * FROM base_jobs WHERE job = $job),
others AS (
    SELECT j.*, j."user" = o."user" AND j.name = o.name AS same_name, j."user" = o."user" AS same_user, j.queue = o.queue AS same_queue,
           abs(epoch(j.submit_ts - o.submit_ts)) AS apart_s
    FROM base_jobs AS j CROSS JOIN own AS o
    WHERE j.job <> o.job AND j.gpus = o.gpus
),
alike AS (
    SELECT CASE WHEN (SELECT count(*) FROM others WHERE same_name) >= 5 THEN 'name'
                WHEN (SELECT count(*) FROM others WHERE same_user) >= 5 THEN 'user'
                WHEN (SELECT count(*) FROM others WHERE same_queue) >= 5 THEN 'queue' END AS by
),
nearest AS (
    SELECT others.*, alike.by FROM others CROSS JOIN alike
    WHERE CASE alike.by WHEN 'name' THEN same_name WHEN 'user' THEN same_user WHEN 'queue' THEN same_queue END
    ORDER BY apart_s NULLS LAST, job
    LIMIT 50
),
held AS (
    SELECT p.job, p.machine, p.gpu_indices, p.start_ts, p.held_until_ts
    FROM base_placements AS p WHERE p.gpu_indices IS NOT NULL AND (p.job IN (SELECT job FROM nearest) OR p.job = $job)
),
used AS (
    SELECT job, avg(util) AS util_pct
    FROM (
        SELECT job, unnest(list_transform(gpu_indices, lambda i: util[i + 1])) AS util
        FROM (
            -- rows that repeat another one are counted once
            SELECT DISTINCT h.*, s.ts, s.util, s.mem_mb
            FROM gpu_samples AS s JOIN held AS h ON h.machine = s.machine AND s.ts >= h.start_ts AND s.ts < h.held_until_ts
            WHERE s.cluster = $cluster
        )
    )
    GROUP BY job
),
figures AS (
    SELECT n.job, n.by, n.state, n.wait_s, n.run_s, u.util_pct FROM nearest AS n LEFT JOIN used AS u USING (job)
)
SELECT m.measure, f.by, (SELECT count(*) FROM figures) AS jobs,
       (SELECT count(*) FROM figures WHERE state IN ('failed', 'out_of_memory', 'node_fail')) AS failed,
       count(m.value) AS known, quantile_cont(m.value, 0.1) AS p10, quantile_cont(m.value, 0.5) AS p50, quantile_cont(m.value, 0.9) AS p90,
       any_value(CASE m.measure WHEN 'wait_s' THEN own.wait_s WHEN 'run_s' THEN own.run_s ELSE u.util_pct END) AS own
FROM figures AS f
CROSS JOIN unnest([{measure: 'wait_s', value: f.wait_s}, {measure: 'run_s', value: f.run_s}, {measure: 'util_pct', value: f.util_pct}]) AS each(m)
CROSS JOIN own LEFT JOIN used AS u ON u.job = own.job
GROUP BY m.measure, f.by
ORDER BY list_position(['wait_s', 'run_s', 'util_pct'], m.measure)

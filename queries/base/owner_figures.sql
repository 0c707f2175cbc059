-- What the jobs of each user, queue or account ($owner) held, lost, used and waited; see users.sql on the figures.
WITH owned AS (
    SELECT job, CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name, state, may_have_run FROM base_jobs
),
held AS (
    SELECT job, CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name, gpu_s, node_s, outcome FROM base_held
),
hours AS (
    SELECT name, sum(gpu_s) AS held, sum(node_s) AS on_nodes,
           sum(gpu_s) FILTER (outcome <> 'unknown') AS ended, sum(node_s) FILTER (outcome <> 'unknown') AS ended_on_nodes,
           sum(gpu_s) FILTER (outcome = 'failed') AS failed, sum(gpu_s) FILTER (outcome = 'killed') AS killed, sum(gpu_s) FILTER (outcome = 'retried') AS retried,
           sum(node_s) FILTER (outcome IN ('failed', 'killed', 'retried')) AS lost_on_nodes
    FROM held
    GROUP BY name
),
measured AS (
    SELECT job, sum(samples) AS samples, sum(total) AS total, sum(total) / sum(samples) / 1e6 AS mean_pct FROM base_job_use GROUP BY job
),
used AS (
    SELECT o.name, count(*) AS measured, sum(m.total) / sum(m.samples) / 1e6 AS mean_pct, quantile_cont(m.mean_pct, 0.1) AS p10_pct,
           count(*) FILTER (m.mean_pct < $idle_below) AS idle, sum(h.held) FILTER (m.mean_pct < $idle_below) AS idle_held
    FROM measured AS m JOIN owned AS o USING (job)
    LEFT JOIN (SELECT job, sum(gpu_s) AS held FROM held SEMI JOIN measured USING (job) GROUP BY job) AS h USING (job)
    GROUP BY o.name
),
waited AS (
    SELECT CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name,
           quantile_cont(minutes, 0.5) AS p50, quantile_cont(minutes, 0.95) AS p95
    FROM base_waits GROUP BY ALL
),
owners AS (
    SELECT name, count(*) AS jobs, count(*) FILTER (state IN ('failed', 'out_of_memory', 'node_fail')) AS failed_jobs,
           bool_or(may_have_run) AS may_have_run
    FROM owned GROUP BY name
    UNION ALL
    -- who held GPUs in a time that a filter chooses, without a job submitted in it
    SELECT DISTINCT name, 0, 0, true FROM held ANTI JOIN (SELECT coalesce(name, '') AS name, name IS NULL AS nameless FROM owned) AS o ON coalesce(held.name, '') = o.name AND (held.name IS NULL) = o.nameless
),
-- 0 only where it is known that nothing was held or lost
known AS (
    SELECT o.name, CASE WHEN o.may_have_run THEN h.held ELSE coalesce(h.held, 0) END AS held, h.on_nodes,
           CASE WHEN h.ended IS NOT NULL OR NOT o.may_have_run THEN coalesce(h.failed, 0) END AS failed,
           CASE WHEN h.ended IS NOT NULL OR NOT o.may_have_run THEN coalesce(h.killed, 0) END AS killed,
           CASE WHEN h.ended IS NOT NULL OR NOT o.may_have_run THEN coalesce(h.retried, 0) END AS retried,
           CASE WHEN h.ended_on_nodes IS NOT NULL THEN coalesce(h.lost_on_nodes, 0) END AS lost_on_nodes
    FROM owners AS o LEFT JOIN hours AS h ON h.name IS NOT DISTINCT FROM o.name
),
figures AS (
    SELECT o.*, h.* EXCLUDE (name), u.* EXCLUDE (name)
    FROM owners AS o LEFT JOIN known AS h ON h.name IS NOT DISTINCT FROM o.name LEFT JOIN used AS u ON u.name IS NOT DISTINCT FROM o.name
)
SELECT f.name, f.jobs, f.held::DOUBLE / 3600 AS gpu_hours, f.on_nodes::DOUBLE / 3600 AS node_hours, (f.failed + f.killed + f.retried)::DOUBLE / 3600 AS lost_gpu_hours,
       f.lost_on_nodes::DOUBLE / 3600 AS lost_node_hours,
       100 * (f.failed + f.killed + f.retried)::DOUBLE / nullif(sum(f.failed + f.killed + f.retried) OVER ()::DOUBLE, 0) AS lost_pct,
       100 * (f.failed + f.killed + f.retried)::DOUBLE / nullif(f.held::DOUBLE, 0) AS own_lost_pct,
       f.failed::DOUBLE / 3600 AS failed_h, f.killed::DOUBLE / 3600 AS killed_h, f.retried::DOUBLE / 3600 AS retried_h, f.failed_jobs,
       w.p50 AS wait_p50_min, w.p95 AS wait_p95_min,
       CASE WHEN f.measured > 0 THEN f.measured END AS measured_jobs, f.mean_pct AS util_mean_pct, f.p10_pct AS util_p10_pct,
       CASE WHEN f.measured > 0 THEN f.idle END AS idle_jobs, CASE WHEN f.measured > 0 THEN coalesce(f.idle_held, 0)::DOUBLE / 3600 END AS idle_gpu_hours
FROM figures AS f LEFT JOIN waited AS w ON w.name IS NOT DISTINCT FROM f.name

-- What the jobs of each user, queue or account ($owner) held, used and waited in each period (base_period_cuts); see activity_by_user.sql on the figures.
WITH owned AS (
    SELECT job, CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name, submit_ts FROM base_jobs
),
measured AS (
    SELECT job, sum(total) / sum(samples) / 1e6 AS mean_pct FROM base_job_use GROUP BY job
),
pieces AS (
    SELECT cut, CASE $owner WHEN 'user' THEN "user" WHEN 'queue' THEN queue ELSE account END AS name, job, gpu_s, node_s, outcome FROM base_period_pieces
),
held AS (
    SELECT p.name, p.cut, sum(gpu_s) AS gpu_s, sum(node_s) AS node_s,
           CASE WHEN count(*) FILTER (outcome <> 'unknown') > 0 THEN coalesce(sum(gpu_s) FILTER (outcome IN ('failed', 'killed', 'retried')), 0) END AS lost,
           CASE WHEN count(m.job) > 0 THEN coalesce(sum(gpu_s) FILTER (m.mean_pct < $idle_below), 0) END AS idle
    FROM pieces AS p LEFT JOIN measured AS m USING (job)
    GROUP BY p.name, p.cut
),
used AS (
    SELECT u.name, c.cut, sum(u.total) / sum(u.samples) / 1e6 AS mean_pct
    FROM (SELECT o.name, epoch_us(u.ts) AS us, sum(u.total) AS total, sum(u.samples) AS samples FROM base_job_use AS u JOIN owned AS o USING (job) GROUP BY ALL) AS u
    ASOF JOIN base_period_cuts AS c ON u.us >= c.from_us
    WHERE u.us < c.until_us
    GROUP BY ALL
),
submitted AS (
    SELECT j.job, j.name, c.cut FROM (SELECT *, epoch_us(submit_ts) AS us FROM owned WHERE submit_ts IS NOT NULL) AS j ASOF JOIN base_period_cuts AS c ON j.us >= c.from_us
),
jobs AS (SELECT name, cut, count(*) AS jobs FROM submitted GROUP BY ALL),
waited AS (
    SELECT s.name, s.cut, quantile_cont(w.minutes, 0.5) AS p50, quantile_cont(w.minutes, 0.95) AS p95 FROM base_waits AS w JOIN submitted AS s USING (job) GROUP BY ALL
),
keys AS (SELECT name, cut FROM held UNION SELECT name, cut FROM jobs)
SELECT k.name, c.ts, c.label AS period, coalesce(j.jobs, 0) AS jobs,
       CASE WHEN h.cut IS NULL THEN 0 ELSE h.gpu_s END::DOUBLE / 3600 AS gpu_hours, h.node_s::DOUBLE / 3600 AS node_hours, h.lost::DOUBLE / 3600 AS lost_gpu_hours,
       w.p50 AS wait_p50_min, w.p95 AS wait_p95_min, u.mean_pct AS util_mean_pct, h.idle::DOUBLE / 3600 AS idle_gpu_hours
FROM keys AS k JOIN base_period_cuts AS c USING (cut)
LEFT JOIN held AS h ON h.cut = k.cut AND h.name IS NOT DISTINCT FROM k.name
LEFT JOIN jobs AS j ON j.cut = k.cut AND j.name IS NOT DISTINCT FROM k.name
LEFT JOIN waited AS w ON w.cut = k.cut AND w.name IS NOT DISTINCT FROM k.name
LEFT JOIN used AS u ON u.cut = k.cut AND u.name IS NOT DISTINCT FROM k.name

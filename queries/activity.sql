-- title: The cluster over time
-- section: overview
-- order: 52
-- question: When were GPUs held and used, when did jobs wait, and when did attempts fail?
-- population: {attempts} attempt{attempts||s} less {attempts_without_start} without a start; {delays} wait{delays||s}, and {never_started} that never started. Means per period (--by), {period_zone}, over the part that the log covers, and that --since and --until leave. GPU-hours are split at the borders of periods, so they add up; waits are in the period in which the job was submitted.
-- needs: attempts
-- detail: yes
-- column: ts | UTC | start of the period
-- column: period | - | the period: 2026-10, 2026-W44 (ISO weeks), 2026-Q4, a day or an hour
-- column: gpus_busy | GPUs | mean number of GPUs held; empty if no gang size is known
-- column: allocated_pct | % | gpus_busy as a share of the cluster's GPUs (from the node list and from use; down nodes count); empty if above 100 %, as more was held than the known nodes have: see data_quality
-- column: util_mean_pct | % | mean GPU utilization of the GPUs held, by telemetry; empty without telemetry
-- column: submitted | jobs | jobs submitted
-- column: waiting | attempts | mean number of attempts waiting for GPUs; attempts that never started count until they were given up or their log ended
-- column: waiting_gpus | GPUs | mean number of GPUs that waiting attempts requested
-- column: failures | attempts | attempts that failed, ran out of memory or time, lost a node or were preempted in this period, by their end
-- column: gpu_hours | GPU-h | held in this period; empty if no gang size is known
-- column: lost_gpu_hours | GPU-h | part of gpu_hours that unsuccessful attempts held, as in gpu_hours_lost; empty if no source states how they ended
-- column: failed_gpu_hours | GPU-h | part of it held by the last attempts of jobs that failed, ran out of memory or lost a node
-- column: idle_gpu_hours | GPU-h | part of gpu_hours that jobs held whose mean GPU utilization, over all of their telemetry, is below --idle-below; empty without telemetry
-- column: wait_p50_min | min | median wait of the attempts of jobs submitted in this period
-- column: wait_p95_min | min | 95th percentile of the same waits
-- chart: time x=ts y=gpus_busy,waiting_gpus y_title=GPUs
--   page.title="GPUs held and waited for, over time" terminal.title="GPUs held and waited for over time"
--   terminal.y="gpus_busy:GPUs held,waiting_gpus:GPUs waited for"
WITH changes AS (
    SELECT held_from_ts AS ts, gpus AS busy, 0 AS waiting, 0.0 AS demand FROM unfiltered_attempts WHERE start_ts IS NOT NULL AND NOT by_container
    UNION ALL
    SELECT greatest(held_until_ts, held_from_ts), -gpus, 0, 0 FROM unfiltered_attempts WHERE start_ts IS NOT NULL AND NOT by_container
    UNION ALL
    SELECT held_from_ts, gpus, 0, 0 FROM unfiltered_holdings
    UNION ALL
    SELECT held_until_ts, -gpus, 0, 0 FROM unfiltered_holdings
    UNION ALL
    SELECT queued_ts, 0, 1, gpus FROM unfiltered_attempts WHERE wait_s IS NOT NULL
    UNION ALL
    SELECT greatest(queued_ts, held_from_ts), 0, -1, -gpus FROM unfiltered_attempts WHERE wait_s IS NOT NULL
    UNION ALL
    SELECT queued_ts, 0, 1, gpus FROM unfiltered_never_started WHERE queued_ts IS NOT NULL AND until_ts > queued_ts
    UNION ALL
    SELECT until_ts, 0, -1, -gpus FROM unfiltered_never_started WHERE queued_ts IS NOT NULL AND until_ts > queued_ts
),
ends AS (SELECT min(begin_us) AS first_us, max(end_us) AS last_us FROM base_period_cuts HAVING count(*) > 0),
-- by quarters of an hour first: every zone's periods consist of them, and there are fewer than changes
within AS (
    SELECT us // 900000000 AS quarter, waiting, (us % 900000000 / 1e6)::DECIMAL(14, 6) AS late_s,
           coalesce(busy, 0)::DECIMAL(27, 9) AS busy, coalesce(demand, 0)::DECIMAL(27, 9) AS demand
    FROM (SELECT *, least(greatest(epoch_us(ts), first_us), last_us) AS us FROM changes CROSS JOIN ends WHERE ts IS NOT NULL)
),
quarters AS (
    SELECT quarter * 900000000 AS us, sum(busy) AS busy, sum(waiting) AS waiting, sum(demand) AS demand,
           sum(busy * late_s) AS busy_late, sum(waiting * late_s) AS waiting_late, sum(demand * late_s) AS demand_late
    FROM within
    GROUP BY ALL
),
changed AS (
    SELECT cut, sum(busy) AS busy, sum(waiting) AS waiting, sum(demand) AS demand, sum(busy_late + busy * after_s) AS busy_late,
           sum(waiting_late + waiting * after_s) AS waiting_late, sum(demand_late + demand * after_s) AS demand_late
    FROM (SELECT q.*, c.cut, ((q.us - c.from_us) / 1e6)::DECIMAL(14, 6) AS after_s FROM quarters AS q ASOF JOIN base_period_cuts AS c ON q.us >= c.from_us)
    GROUP BY cut
),
-- what holds at a period's end, for all of it, less what each change did not hold since its beginning
means AS (
    SELECT cut, (end_us - begin_us) / 1e6 AS seconds,
           ((sum(busy) OVER so_far)::DECIMAL(27, 9) * length_s - coalesce(busy_late, 0))::DOUBLE AS busy_s,
           ((sum(waiting) OVER so_far)::DECIMAL(18, 0) * length_s - coalesce(waiting_late, 0))::DOUBLE AS waiting_s,
           ((sum(demand) OVER so_far)::DECIMAL(27, 9) * length_s - coalesce(demand_late, 0))::DOUBLE AS demand_s
    FROM (SELECT *, ((end_us - from_us) / 1e6)::DECIMAL(14, 6) AS length_s FROM base_period_cuts LEFT JOIN changed USING (cut))
    WHERE end_us > begin_us
    WINDOW so_far AS (ORDER BY cut)
),
total AS (SELECT sum(gpus) AS gpus FROM base_machines),
measured AS (SELECT job, sum(total) / sum(samples) / 1e6 AS mean_pct FROM unfiltered_job_use GROUP BY job),
held AS (
    SELECT cut, sum(gpu_s) AS gpu_s, CASE WHEN count(*) FILTER (outcome <> 'unknown') > 0 THEN coalesce(sum(gpu_s) FILTER (outcome IN ('failed', 'killed', 'retried')), 0) END AS lost,
           CASE WHEN count(*) FILTER (outcome <> 'unknown') > 0 THEN coalesce(sum(gpu_s) FILTER (outcome = 'failed'), 0) END AS failed,
           CASE WHEN count(m.job) > 0 THEN coalesce(sum(gpu_s) FILTER (m.mean_pct < $idle_below), 0) END AS idle
    FROM unfiltered_period_pieces LEFT JOIN measured AS m USING (job)
    GROUP BY cut
),
used AS (
    SELECT c.cut, sum(u.total) / sum(u.samples) / 1e6 AS mean_pct
    FROM (SELECT epoch_us(ts) AS us, sum(total) AS total, sum(samples) AS samples FROM unfiltered_job_use GROUP BY ALL) AS u ASOF JOIN base_period_cuts AS c ON u.us >= c.from_us
    WHERE u.us < c.until_us
    GROUP BY ALL
),
jobs AS (
    SELECT j.job, c.cut
    FROM (SELECT job, epoch_us(submit_ts) AS us FROM unfiltered_jobs WHERE submit_ts >= coalesce($since::TIMESTAMPTZ, submit_ts) AND ($until::TIMESTAMPTZ IS NULL OR submit_ts < $until::TIMESTAMPTZ)) AS j
    ASOF JOIN base_period_cuts AS c ON j.us >= c.from_us
),
submitted AS (SELECT cut, count(*) AS jobs FROM jobs GROUP BY cut),
waited AS (SELECT cut, quantile_cont(minutes, 0.5) AS p50, quantile_cont(minutes, 0.95) AS p95 FROM unfiltered_waits JOIN jobs USING (job) GROUP BY cut),
failed AS (
    SELECT cut, count(*) AS attempts
    FROM (SELECT epoch_us(end_ts) AS us FROM unfiltered_attempts WHERE state IN ('failed', 'out_of_memory', 'node_fail', 'timeout', 'preempted') AND end_ts >= coalesce($since::TIMESTAMPTZ, end_ts)
          AND ($until::TIMESTAMPTZ IS NULL OR end_ts < $until::TIMESTAMPTZ)) AS f
    ASOF JOIN base_period_cuts AS c ON f.us >= c.from_us
    GROUP BY cut
)
SELECT e.ts, e.label AS period, CASE WHEN sized.any_known THEN busy_s / seconds END AS gpus_busy,
       CASE WHEN sized.any_known AND busy_s / seconds <= total.gpus * (1 + 1e-8) THEN least(100 * busy_s / seconds / nullif(total.gpus, 0), 100) END AS allocated_pct, u.mean_pct AS util_mean_pct,
       coalesce(s.jobs, 0) AS submitted, waiting_s / seconds AS waiting, demand_s / seconds AS waiting_gpus, coalesce(f.attempts, 0) AS failures,
       CASE WHEN sized.any_known THEN coalesce(h.gpu_s, 0)::DOUBLE / 3600 END AS gpu_hours, h.lost::DOUBLE / 3600 AS lost_gpu_hours, h.failed::DOUBLE / 3600 AS failed_gpu_hours,
       h.idle::DOUBLE / 3600 AS idle_gpu_hours, w.p50 AS wait_p50_min, w.p95 AS wait_p95_min
FROM base_period_cuts AS e CROSS JOIN total CROSS JOIN unfiltered_size_known AS sized
JOIN means AS m USING (cut) LEFT JOIN used AS u USING (cut) LEFT JOIN submitted AS s USING (cut) LEFT JOIN failed AS f USING (cut) LEFT JOIN held AS h USING (cut) LEFT JOIN waited AS w USING (cut)
ORDER BY e.ts

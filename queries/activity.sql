-- title: The cluster over time
-- section: overview
-- order: 52
-- question: When were GPUs held and used, when did jobs wait, and when did attempts fail?
-- population: {attempts} attempt{attempts||s} less {attempts_without_start} without a start; {delays} wait{delays||s}, and {never_started} that never started. Means per period (--by), UTC, over the part that the log covers.
-- needs: attempts
-- detail: yes
-- column: ts | UTC | start of the period
-- column: gpus_busy | GPUs | mean number of GPUs held; empty if no gang size is known
-- column: allocated_pct | % | gpus_busy as a share of the cluster's GPUs (from the node list and from use; down nodes count); empty if above 100 %, as more was held than the known nodes have: see data_quality
-- column: util_mean_pct | % | mean GPU utilization of the GPUs held, by telemetry; empty without telemetry
-- column: submitted | jobs | jobs submitted
-- column: waiting | attempts | mean number of attempts waiting for GPUs; attempts that never started count until they were given up or their log ended
-- column: waiting_gpus | GPUs | mean number of GPUs that waiting attempts requested
-- column: failures | attempts | attempts that failed, ran out of memory or time, lost a node or were preempted in this period
-- chart: time x=ts y=gpus_busy,waiting_gpus y_title=GPUs
--   page.title="GPUs held and waited for, over time" terminal.title="GPUs held and waited for over time"
--   terminal.y="gpus_busy:GPUs held,waiting_gpus:GPUs waited for"
WITH edges AS (
    SELECT ts, make_timestamp(epoch_us(ts)) AS period, greatest(ts, first_ts) AS begin_ts,
           least(ts + CAST('1 ' || $by AS INTERVAL), last_ts) AS end_ts
    FROM (
        SELECT *, unnest(generate_series(date_trunc($by, first_ts), last_ts, CAST('1 ' || $by AS INTERVAL))) AS ts
        FROM base_log_span
        WHERE first_ts IS NOT NULL
    )
),
changes AS (
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
-- of times without a zone: with one, a calendar is asked, for millions of them
within AS (
    SELECT *, ((epoch_us(moment) - epoch_us(date_trunc($by, moment))) / 1e6)::DECIMAL(14, 6) AS late_s
    FROM (
        SELECT make_timestamp(epoch_us(least(greatest(ts, first_ts), last_ts))) AS moment, waiting,
               coalesce(busy, 0)::DECIMAL(27, 9) AS busy, coalesce(demand, 0)::DECIMAL(27, 9) AS demand
        FROM changes CROSS JOIN base_log_span
        WHERE ts IS NOT NULL AND first_ts IS NOT NULL
    )
),
changed AS (
    SELECT date_trunc($by, moment) AS period, sum(busy) AS busy, sum(waiting) AS waiting, sum(demand) AS demand,
           sum(busy * late_s) AS busy_late, sum(waiting * late_s) AS waiting_late, sum(demand * late_s) AS demand_late
    FROM within
    GROUP BY ALL
),
-- what holds at a period's end, for all of it, less what each change did not hold since its beginning
means AS (
    SELECT period, epoch(end_ts) - epoch(begin_ts) AS seconds,
           ((sum(busy) OVER so_far)::DECIMAL(27, 9) * length_s - coalesce(busy_late, 0))::DOUBLE AS busy_s,
           ((sum(waiting) OVER so_far)::DECIMAL(18, 0) * length_s - coalesce(waiting_late, 0))::DOUBLE AS waiting_s,
           ((sum(demand) OVER so_far)::DECIMAL(27, 9) * length_s - coalesce(demand_late, 0))::DOUBLE AS demand_s
    FROM (SELECT *, (epoch(end_ts) - epoch(ts))::DECIMAL(14, 6) AS length_s FROM edges LEFT JOIN changed USING (period))
    WHERE end_ts > begin_ts
    WINDOW so_far AS (ORDER BY period)
),
total AS (SELECT sum(gpus) AS gpus FROM base_machines),
used AS (SELECT ts, sum(total) / sum(samples) / 1e6 AS mean_pct FROM unfiltered_job_use GROUP BY ts),
submitted AS (SELECT date_trunc($by, make_timestamp(epoch_us(submit_ts))) AS period, count(*) AS jobs FROM unfiltered_jobs GROUP BY ALL),
failed AS (SELECT date_trunc($by, make_timestamp(epoch_us(end_ts))) AS period, count(*) AS attempts FROM unfiltered_attempts
           WHERE state IN ('failed', 'out_of_memory', 'node_fail', 'timeout', 'preempted') GROUP BY ALL)
SELECT e.ts, CASE WHEN sized.any_known THEN busy_s / seconds END AS gpus_busy,
       CASE WHEN sized.any_known AND busy_s / seconds <= total.gpus * (1 + 1e-8) THEN least(100 * busy_s / seconds / nullif(total.gpus, 0), 100) END AS allocated_pct, u.mean_pct AS util_mean_pct,
       coalesce(s.jobs, 0) AS submitted, waiting_s / seconds AS waiting, demand_s / seconds AS waiting_gpus, coalesce(f.attempts, 0) AS failures
FROM (SELECT ts, make_timestamp(epoch_us(ts)) AS period FROM edges) AS e CROSS JOIN total CROSS JOIN unfiltered_size_known AS sized
JOIN means AS m USING (period) LEFT JOIN used AS u USING (ts) LEFT JOIN submitted AS s USING (period) LEFT JOIN failed AS f USING (period)
ORDER BY e.ts

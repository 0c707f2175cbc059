-- title: GPUs in use over time
-- section: overview
-- order: 50
-- question: When was the cluster full, and when did jobs wait?
-- population: {attempts} attempt{attempts||s} less {attempts_without_start} without a start; {delays} wait{delays||s}, and {never_started} that never started. With --since and --until, the time between them. At most 400 bins of equal length; each row's time is the start of its bin.
-- needs: attempts
-- detail: yes
-- column: ts | UTC | start of the bin
-- column: gpus_busy | GPUs | mean number of GPUs held; empty if no gang size is known
-- column: gpus_total | GPUs | GPUs of the cluster (from the node list and from use; down nodes count)
-- column: busy_pct | % | gpus_busy over gpus_total; empty if above 100 %, as more was held than the known nodes have: see data_quality
-- column: jobs_waiting | attempts | mean number of attempts waiting for GPUs; attempts that never started count until they were given up or their log ended
-- column: gpus_waited_for | GPUs | mean number of GPUs that waiting attempts requested
-- chart: time x=ts y=gpus_busy,gpus_waited_for limit=gpus_total
--   page.lead=yes page.title="GPUs in use and GPUs waited for" y_title=GPUs
--   terminal.title="GPUs in use and attempts waiting over time" terminal.y="gpus_busy:GPUs in use,jobs_waiting:waiting"
--   beside=overview height=3
WITH span AS (
    SELECT greatest(min(first_ts), $since::TIMESTAMPTZ) AS first_ts, least(max(last_ts), $until::TIMESTAMPTZ) AS last_ts
    FROM (SELECT queued_ts AS first_ts, log_end_ts AS last_ts FROM unfiltered_attempts UNION ALL SELECT queued_ts, until_ts FROM unfiltered_never_started)
),
width AS (
    SELECT first_ts, last_ts, greatest(60, ceil(epoch(last_ts - first_ts) / 400 / 60) * 60)::BIGINT AS s FROM span WHERE last_ts >= first_ts
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
    SELECT queued_ts, 0, 1, coalesce(gpus, 0) FROM unfiltered_never_started WHERE queued_ts IS NOT NULL AND until_ts > queued_ts
    UNION ALL
    SELECT until_ts, 0, -1, -coalesce(gpus, 0) FROM unfiltered_never_started WHERE queued_ts IS NOT NULL AND until_ts > queued_ts
),
-- whole microseconds since the first time, and billionths of a GPU: sums of them are exact, whichever rows are added first
placed AS (
    SELECT epoch_us(least(greatest(ts, $since::TIMESTAMPTZ), $until::TIMESTAMPTZ)) - epoch_us(first_ts) AS us, 1000000 * s AS bin_us, (1e9 * busy)::BIGINT AS busy, waiting, (1e9 * demand)::BIGINT AS demand
    FROM changes CROSS JOIN width
    WHERE ts IS NOT NULL
),
summed AS (
    SELECT CASE WHEN us < 0 THEN -1 ELSE us // bin_us END AS bin,
           sum(busy) AS busy, sum(waiting) AS waiting, sum(demand) AS demand,
           sum(busy::HUGEINT * us) AS busy_us, sum(waiting * us) AS waiting_us, sum(demand::HUGEINT * us) AS demand_us, max(us) AS last_us
    FROM placed
    GROUP BY ALL
),
bins AS (
    SELECT unnest(generate_series(0, (epoch(last_ts - first_ts) / s)::BIGINT)) AS bin FROM width
),
-- between changes a level stays: what is added at u lasts until the bin ends, end - u
levels AS (
    SELECT bin, 1000000 * s * bin AS from_us,
           least(1000000 * s * (bin + 1), greatest(max(last_us) OVER (), 1000000 * s * max(bin) OVER ())) AS to_us,
           sum(coalesce(busy, 0)) OVER upto AS busy, sum(coalesce(waiting, 0)) OVER upto AS waiting, sum(coalesce(demand, 0)) OVER upto AS demand,
           coalesce(busy, 0) AS busy_more, coalesce(waiting, 0) AS waiting_more, coalesce(demand, 0) AS demand_more,
           coalesce(busy_us, 0) AS busy_us, coalesce(waiting_us, 0) AS waiting_us, coalesce(demand_us, 0) AS demand_us
    FROM bins FULL JOIN summed USING (bin) CROSS JOIN width
    WINDOW upto AS (ORDER BY bin)
),
means AS (
    SELECT bin, (busy * to_us - (busy - busy_more) * from_us - busy_us)::DOUBLE / 1e9 / (to_us - from_us) AS busy,
           (waiting * to_us - (waiting - waiting_more) * from_us - waiting_us)::DOUBLE / (to_us - from_us) AS waiting,
           (demand * to_us - (demand - demand_more) * from_us - demand_us)::DOUBLE / 1e9 / (to_us - from_us) AS demand
    FROM levels
    WHERE bin >= 0 AND to_us > from_us
),
total AS (SELECT sum(gpus) AS gpus FROM base_machines)
SELECT first_ts + to_seconds(bin * s) AS ts,
       CASE WHEN sized.any_known THEN busy END AS gpus_busy,
       total.gpus::DOUBLE AS gpus_total,
       CASE WHEN sized.any_known AND busy <= total.gpus * (1 + 1e-8) THEN least(100 * busy / nullif(total.gpus, 0), 100) END AS busy_pct,
       waiting AS jobs_waiting,
       demand AS gpus_waited_for
FROM means CROSS JOIN width CROSS JOIN total CROSS JOIN unfiltered_size_known AS sized
ORDER BY bin

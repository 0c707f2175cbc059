-- title: GPUs in use over time
-- section: overview
-- order: 50
-- question: When was the cluster full, and when did jobs wait?
-- population: {attempts} attempts less {attempts_without_start} without a start; {delays} waits, and {never_started} that never started. At most 400 bins of equal length; times are the bins' beginnings.
-- needs: attempts
-- detail: yes
-- column: ts | UTC | beginning of the bin
-- column: gpus_busy | GPUs | mean number of GPUs held
-- column: gpus_total | GPUs | GPUs of the cluster (machine list and use; machines that were down are counted)
-- column: busy_pct | % | gpus_busy over gpus_total
-- column: jobs_waiting | attempts | mean number of attempts waiting for GPUs; those that never started wait until they ended, or to the end of their log
-- column: gpus_waited_for | GPUs | mean number of GPUs that waiting attempts asked for
-- chart: time x=ts y=gpus_busy,gpus_waited_for limit=gpus_total
--   page.lead=yes page.title="GPUs in use and GPUs waited for" y_title=GPUs
--   terminal.title="GPUs in use and attempts waiting over time" terminal.y="gpus_busy:GPUs in use,jobs_waiting:waiting"
--   beside=overview height=3
WITH span AS (
    SELECT min(first_ts) AS first_ts, max(last_ts) AS last_ts
    FROM (SELECT queued_ts AS first_ts, log_end_ts AS last_ts FROM unfiltered_attempts UNION ALL SELECT queued_ts, until_ts FROM unfiltered_never_started)
),
width AS (
    SELECT first_ts, last_ts, greatest(60, ceil(epoch(last_ts - first_ts) / 400 / 60) * 60)::BIGINT AS s FROM span
),
bins AS (
    SELECT unnest(generate_series(0, (epoch(last_ts - first_ts) / s)::BIGINT)) AS bin FROM width
),
changes AS (
    SELECT held_from_ts AS ts, gpus AS busy, 0 AS waiting, 0.0 AS demand FROM unfiltered_attempts WHERE start_ts IS NOT NULL
    UNION ALL
    SELECT greatest(held_until_ts, held_from_ts), -gpus, 0, 0 FROM unfiltered_attempts WHERE start_ts IS NOT NULL
    UNION ALL
    SELECT queued_ts, 0, 1, gpus FROM unfiltered_attempts WHERE wait_s IS NOT NULL
    UNION ALL
    SELECT greatest(queued_ts, held_from_ts), 0, -1, -gpus FROM unfiltered_attempts WHERE wait_s IS NOT NULL
    UNION ALL
    SELECT queued_ts, 0, 1, coalesce(gpus, 0) FROM unfiltered_never_started WHERE queued_ts IS NOT NULL AND until_ts > queued_ts
    UNION ALL
    SELECT until_ts, 0, -1, -coalesce(gpus, 0) FROM unfiltered_never_started WHERE queued_ts IS NOT NULL AND until_ts > queued_ts
    UNION ALL
    SELECT first_ts + to_seconds(bin * s), 0, 0, 0 FROM bins CROSS JOIN width
),
levels AS (
    SELECT ts, lead(ts) OVER (ORDER BY ts) AS next_ts,
           sum(sum(busy)) OVER (ORDER BY ts) AS busy, sum(sum(waiting)) OVER (ORDER BY ts) AS waiting,
           sum(sum(demand)) OVER (ORDER BY ts) AS demand
    FROM changes
    GROUP BY ts
),
weighted AS (
    SELECT ((epoch_us(ts) - epoch_us(first_ts)) // (1000000 * s))::BIGINT AS bin, (epoch_us(next_ts) - epoch_us(ts)) / 1e6 AS seconds, busy, waiting, demand
    FROM levels CROSS JOIN width
    WHERE next_ts IS NOT NULL AND ts >= first_ts
),
total AS (SELECT sum(gpus) AS gpus FROM base_machines)
SELECT any_value(first_ts) + to_seconds(bin * any_value(s)) AS ts,
       sum(busy * seconds) / sum(seconds) AS gpus_busy,
       any_value(total.gpus)::DOUBLE AS gpus_total,
       100 * sum(busy * seconds) / sum(seconds) / nullif(any_value(total.gpus), 0) AS busy_pct,
       sum(waiting * seconds) / sum(seconds) AS jobs_waiting,
       sum(demand * seconds) / sum(seconds) AS gpus_waited_for
FROM weighted CROSS JOIN width CROSS JOIN total
WHERE seconds > 0
GROUP BY bin
ORDER BY bin

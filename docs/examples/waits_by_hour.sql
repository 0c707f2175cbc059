-- title: Waits by hour of submission
-- section: queueing
-- question: At which hour of the day (UTC) is it best to submit?
-- population: {waits} waits, as in wait_by_size.
-- needs: attempts
-- column: hour | h | hour of the day at which the wait began, 0 to 23
-- column: waits | waits | how many
-- column: p50_min | min | median wait
-- column: wait_h | h | hours waited, all together
-- chart: bars x=hour y=wait_h title="Hours waited, by hour of submission"
SELECT hour(a.queued_ts) AS hour, count(*) AS waits, quantile_cont(w.minutes, 0.5) AS p50_min,
       sum(w.seconds::DECIMAL(28, 9))::DOUBLE / 3600 AS wait_h
FROM base_waits AS w JOIN base_attempts AS a USING (job, attempt)
WHERE a.queued_ts IS NOT NULL
GROUP BY ALL
ORDER BY hour

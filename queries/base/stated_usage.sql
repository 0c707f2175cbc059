-- GPU-seconds that sreport states of a period, for the cluster or a user of an account, beside those of the attempts there: one row per figure.
-- An account's figure includes its sub-accounts: it counts only in a report that lists no users; root is the whole cluster.
-- covered: share of the period between the first submission and the end of the log. Slurm counts from Start, and reports whole hours only.
WITH log AS (
    SELECT min(coalesce(queued_ts, start_ts)) AS first_ts, max(log_end_ts) AS last_ts FROM unfiltered_attempts
),
listed AS (
    -- a report that was loaded twice counts once
    SELECT CASE WHEN report = 'user' AND login IS NULL THEN 'account' ELSE report END AS report, account, login, from_ts, to_ts,
           max(gpu_s) AS stated_gpu_s, max(rounding_s) AS rounding_s
    FROM stated_usage
    WHERE cluster = $cluster AND tres = 'gres/gpu' AND to_ts > from_ts
    GROUP BY ALL
),
stated AS (
    FROM listed QUALIFY report <> 'account' OR count(login) OVER (PARTITION BY from_ts, to_ts) = 0
),
used AS (
    SELECT s.report, s.account, s.login, s.from_ts, s.to_ts,
           sum((a.gpus * (epoch(least(a.held_until_ts, s.to_ts)) - epoch(greatest(a.start_ts, s.from_ts))))::DECIMAL(28, 6)) AS exact_gpu_s,
           sum((a.gpus * (epoch(least(a.held_until_ts, s.to_ts)) - epoch(greatest(a.start_ts, s.from_ts))))::DECIMAL(28, 6)) FILTER (a.state IN ('running', 'suspended')) AS running_gpu_s
    FROM stated AS s JOIN unfiltered_attempts AS a
        ON a.start_ts < s.to_ts AND a.held_until_ts > s.from_ts AND (s.report = 'cluster' OR (s.report = 'account' AND (s.account = 'root' OR a.account = s.account))
            OR (a."user" = s.login AND a.account IS NOT DISTINCT FROM s.account))
    GROUP BY ALL
)
SELECT s.*, coalesce(u.exact_gpu_s::DOUBLE, 0) AS gpu_s, coalesce(u.running_gpu_s::DOUBLE, 0) AS running_gpu_s,
       coalesce(greatest(epoch(least(s.to_ts, log.last_ts)) - epoch(greatest(s.from_ts, log.first_ts)), 0), 0) / (epoch(s.to_ts) - epoch(s.from_ts)) AS covered
FROM stated AS s CROSS JOIN log LEFT JOIN used AS u
    ON u.report = s.report AND u.account IS NOT DISTINCT FROM s.account AND u.login IS NOT DISTINCT FROM s.login AND u.from_ts = s.from_ts AND u.to_ts = s.to_ts

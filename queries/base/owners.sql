-- Whose each job is, by what limits are set for; partition_qos is the QOS that its partition has of its own.
WITH RECURSIVE parents AS (
    SELECT substr(name, length('sacctmgr.parent.') + 1) AS account, max_by(value, source) AS parent
    FROM settings WHERE cluster = $cluster AND starts_with(name, 'sacctmgr.parent.') GROUP BY name
),
above AS (
    SELECT DISTINCT account AS leaf, account FROM jobs WHERE cluster = $cluster AND account IS NOT NULL
    UNION
    SELECT a.leaf, p.parent FROM above AS a JOIN parents AS p ON p.account = a.account
),
accounts AS (SELECT leaf, list(account ORDER BY account) AS names FROM above GROUP BY leaf)
SELECT j.job, j.account, coalesce(a.names, []) AS accounts, j.qos, q.qos AS partition_qos
FROM jobs AS j LEFT JOIN accounts AS a ON a.leaf = j.account
LEFT JOIN (SELECT queue, any_value(qos) AS qos FROM queues WHERE cluster = $cluster GROUP BY queue) AS q ON q.queue = j.queue
WHERE j.cluster = $cluster AND EXISTS (FROM gpu_limits WHERE cluster = $cluster AND limit_kind IN ('group', 'per_user', 'per_account'))
ORDER BY j.job

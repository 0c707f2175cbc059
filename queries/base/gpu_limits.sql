-- Limits on the GPUs that accounts, users and QOS may hold together, the newest of each; what a single job may ask for bounds no wait.
SELECT scope, account, "user", partition, qos, limit_kind, gpu_type, max_by(gpus, source) AS gpus
FROM gpu_limits
WHERE cluster = $cluster AND limit_kind IN ('group', 'per_user', 'per_account')
GROUP BY ALL
ORDER BY ALL

-- Instead of job_use where nobody asks for what telemetry tells of users, queues and accounts, or the cluster has none.
SELECT NULL::VARCHAR AS job, NULL::TIMESTAMPTZ AS ts, NULL::BIGINT AS samples, NULL::HUGEINT AS total
WHERE false

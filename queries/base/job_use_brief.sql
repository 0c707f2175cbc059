-- Instead of job_use for the first screen, which has nothing of what telemetry tells of queues and accounts: no rows.
SELECT NULL::VARCHAR AS job, NULL::TIMESTAMPTZ AS ts, NULL::BIGINT AS samples, NULL::HUGEINT AS total
WHERE false

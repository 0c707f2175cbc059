-- Instead of held with --since or --until: what was held between them by the chosen jobs, whenever they were submitted.
-- What was held at no known time counts with the jobs submitted in the period.
SELECT job, "user", queue, account, size_bucket, sum((gpus * (held_until_c - held_from_c))::DECIMAL(28, 6))::DECIMAL(28, 6) AS gpu_s,
       sum((nodes * (held_until_c - held_from_c))::DECIMAL(28, 6))::DECIMAL(28, 6) AS node_s, outcome, true AS is_dated
FROM base_spans
GROUP BY job, attempt, "user", queue, account, size_bucket, outcome
UNION ALL
SELECT job, "user", queue, account, size_bucket, gpu_s, node_s, outcome, is_dated FROM unfiltered_held SEMI JOIN base_jobs USING (job) WHERE NOT is_dated

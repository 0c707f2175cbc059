-- What interrupted attempts of job $job, and how many attempts met the same fault.
SELECT i.attempt, i.cause, i.component, i.evidence, i.machine, i.second_order,
       CASE WHEN i.incident IS NOT NULL THEN (SELECT count(*) FROM base_reliability_interrupted_attempts AS other WHERE other.incident = i.incident) END AS attempts
FROM base_reliability_interrupted_attempts AS i
WHERE i.job = $job

-- Array tasks that are in the store under two ids: texts without JobIDRaw name them by array and number.
SELECT count(*) - count(DISTINCT (array_job, array_task)) AS tasks
FROM jobs
WHERE cluster = $cluster AND array_task IS NOT NULL

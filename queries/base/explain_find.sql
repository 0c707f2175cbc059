-- The jobs that $text may mean, the surest kind alone: its own id, else a task of an array (12_3) or a part of a heterogeneous job (12+1), else ids that end so.
WITH meant AS (
    SELECT job, CASE WHEN job = $text THEN 0 WHEN array_job || '_' || array_task = $text OR het_job || '+' || het_offset = $text THEN 1 ELSE 2 END AS rank
    FROM jobs
    WHERE cluster = $cluster AND (array_job || '_' || array_task = $text OR het_job || '+' || het_offset = $text OR suffix(job, $text))
)
SELECT job, rank FROM meant WHERE rank = (SELECT min(rank) FROM meant) ORDER BY job

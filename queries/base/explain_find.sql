-- The jobs that $text may mean: its own id, a task of an array (12_3), a part of a heterogeneous job (12+1).
SELECT job, job = $text AS own FROM jobs
WHERE cluster = $cluster AND (job = $text OR array_job || '_' || array_task = $text OR het_job || '+' || het_offset = $text)
ORDER BY own DESC, job

-- The jobs whose names are nearest to $text: tasks of an array of that name first.
SELECT coalesce(array_job || '_' || array_task, job) AS name
FROM jobs WHERE cluster = $cluster
ORDER BY coalesce(array_job = $text, false) DESC, jaro_winkler_similarity(job, $text) DESC, job
LIMIT 3

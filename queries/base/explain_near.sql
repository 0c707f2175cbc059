-- The jobs whose names are near $text: tasks of an array of that name first, none that looks unlike it.
SELECT coalesce(array_job || '_' || array_task, job) AS name
FROM jobs WHERE cluster = $cluster AND (array_job = $text OR jaro_winkler_similarity(job, $text) >= 0.8)
ORDER BY coalesce(array_job = $text, false) DESC, jaro_winkler_similarity(job, $text) DESC, job
LIMIT 3

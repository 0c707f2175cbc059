-- The jobs that a filter chooses. A job without the property in the log is not chosen.
SELECT job FROM jobs
WHERE cluster = $cluster
  AND ($users::VARCHAR[] IS NULL OR list_contains($users::VARCHAR[], "user"))
  AND ($queues::VARCHAR[] IS NULL OR list_contains($queues::VARCHAR[], coalesce(queue, '(none)')))
  AND ($accounts::VARCHAR[] IS NULL OR list_contains($accounts::VARCHAR[], account))
  AND ($states::VARCHAR[] IS NULL OR list_contains($states::VARCHAR[], state))
  AND ($least::DOUBLE IS NULL OR gpus BETWEEN $least::DOUBLE AND $most::DOUBLE)
  AND ($since::TIMESTAMPTZ IS NULL OR submit_ts >= $since::TIMESTAMPTZ)
  AND ($until::TIMESTAMPTZ IS NULL OR submit_ts < $until::TIMESTAMPTZ)
ORDER BY job

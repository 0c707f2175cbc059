-- Attempts that say something of the nodes they ran on: those that passed, and those that failed in a way that a node may have a part in.
SELECT a.number, a.job, a.attempt, coalesce('u' || a."user", 'q' || a.queue) AS who, a.start_c, a.size_bucket, p.machines, f.job IS NOT NULL AS failed,
       coalesce(f.rtf_s < 600, false) AS early, coalesce(f.reason, '') AS reason
FROM base_attempts AS a
JOIN base_gang_machines AS p USING (job, attempt)
LEFT JOIN base_machine_failures AS f ON f.job = a.job AND f.attempt = a.attempt AND f.suspect
WHERE (a.state = 'completed' OR f.job IS NOT NULL) AND EXISTS (FROM base_failed)

-- Failed attempts with whether the node may have a part in it: not where only the user can, nor where the scheduler ended it.
SELECT job, attempt, machines, reason, title, gpu_hours, rtf_s,
       coalesce(category, '') <> 'user' AND reason NOT IN ('job_preempted', 'time_limit', 'cancelled') AND state NOT IN ('preempted', 'timeout') AS suspect
FROM base_failures

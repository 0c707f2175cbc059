-- The queues of one cluster with the quotas and limits that its configuration states, if any.
SELECT queue, quota_gpus, quota_source, limit_gpus FROM queues WHERE cluster = $cluster

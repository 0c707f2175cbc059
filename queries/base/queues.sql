-- The queues of one cluster with the quotas that its configuration states, if any.
SELECT queue, quota_gpus, quota_source FROM queues WHERE cluster = $cluster

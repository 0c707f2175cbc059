-- Whether the GPUs of any attempt that ran are known; without a single one nothing can be said of GPUs held.
SELECT count(*) FILTER (ran AND gpus > 0) > 0 OR count(*) FILTER (ran AND gpus IS NULL) = 0 AS any_known FROM base_attempts

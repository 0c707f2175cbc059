-- What is known of an epoch when its job is told to stop, and what an epoch validates. Durations are seconds.

ALTER TABLE suspensions ADD COLUMN epoch_done_s DOUBLE;         -- since the running epoch began, at the order to stop
ALTER TABLE profiles ADD COLUMN validation_samples DOUBLE;      -- looked at in an epoch without learning from them
ALTER TABLE profiles ADD COLUMN validation_bytes DOUBLE;        -- of dataset_bytes, read for that

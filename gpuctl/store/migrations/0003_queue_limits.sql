ALTER TABLE queues ADD COLUMN limit_gpus DOUBLE;         -- the most GPUs it may hold; infinity: no limit; NULL: its quota

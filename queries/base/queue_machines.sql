-- Which machines the jobs of a queue may run on, where the site's configuration says.
SELECT DISTINCT queue, machine FROM queue_machines WHERE cluster = $cluster ORDER BY queue, machine

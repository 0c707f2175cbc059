-- title: Waits compared like for like
-- section: queueing
-- order: 25
-- question: Do a queue's attempts, or large gangs, wait longer than comparable ones?
-- population: {waits} wait{waits||s}, as in wait_by_size. Waits of a queue are compared with waits of the same size that began on the same day in other queues; waits of gangs with waits of one GPU on the same day in the same queue. Waits without a counterpart are left out. The ratio is Mantel and Haenszel's; its interval uses Student's t over days.
-- needs: attempts
-- column: queue | - | queue or virtual cluster; 'all' in rows about a size
-- column: size_bucket | GPUs | GPUs of the gang; 'all' in rows about a queue
-- column: waits | waits | waits with a counterpart
-- column: like_waits | waits | their counterparts
-- column: days | days | days with both
-- column: ratio | times | mean wait over the mean wait of counterparts
-- column: ratio_low | times | lower end of its 95 % interval; empty: too few days
-- column: ratio_high | times | upper end of it
-- column: p | - | probability of a ratio at least as large by chance, if the true one is 1
FROM base_like_waits
ORDER BY queue = 'all', p, queue, list_position(['2-4', '5-8', '>8'], size_bucket)

-- title: Waits, cumulative
-- section: queueing
-- order: 40
-- question: How are waits distributed, by queue and gang size?
-- population: {waits} wait{waits||s}, as in wait_by_size; queue 'all' is every queue. y is 100 i / (n - 1) for the i-th shortest, counted from 0, as in the published notebook. At most 400 points a curve for all queues and 100 for one, evenly spaced in rank, the ends kept.
-- needs: attempts
-- detail: yes
-- column: queue | - | queue or virtual cluster; 'all' is every queue
-- column: size_bucket | GPUs | GPUs of the gang
-- column: minutes | min | wait
-- column: cdf_pct | % | share of waits of at most this length
-- chart: cdf on=page x=minutes y=cdf_pct series=size_bucket where=queue:all scale=minutes each=GPU
--   title="Queueing delay by job size, all queues"
--   x_title="queueing delay (logarithmic)" y_title="% of jobs that waited at most this long"
WITH both_ways AS (
    SELECT queue, size_bucket, minutes, 100 AS points FROM base_waits
    UNION ALL
    SELECT 'all', size_bucket, minutes, 400 FROM base_waits
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY points, queue, size_bucket ORDER BY minutes) - 1 AS i,
           count(*) OVER (PARTITION BY points, queue, size_bucket) AS n
    FROM both_ways
)
SELECT queue, size_bucket, minutes, 100.0 * i / greatest(n - 1, 1) AS cdf_pct
FROM ranked
WHERE n <= points OR i = n - 1 OR i % (n // points + 1) = 0
ORDER BY points DESC, queue, list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket), i

-- title: Waits, cumulative
-- section: queueing
-- order: 40
-- question: How are waits distributed, by queue and gang size?
-- population: {waits} wait{waits||s}, as in wait_by_size; queue 'all' is every queue. y is 100 i / (n - 1) for the i-th shortest, counted from 0, as in the published notebook. At most 400 points per curve for all queues and 100 for one, evenly spaced in rank, including both ends.
-- needs: attempts
-- detail: yes
-- column: queue | - | queue or virtual cluster; 'all' is every queue
-- column: size_bucket | GPUs | GPUs of the gang
-- column: minutes | min | wait
-- column: cdf_pct | % | share of waits of at most this length
-- chart: cdf on=page x=minutes y=cdf_pct series=size_bucket where=queue:all scale=minutes each=GPU
--   title="Queueing delay by job size, all queues"
--   x_title="queueing delay (logarithmic)" y_title="% of jobs that waited at most this long"
WITH sorted AS (
    -- a sorted list a curve takes a quarter of the time that numbering its rows does
    SELECT CASE WHEN grouping(queue) = 0 THEN queue ELSE 'all' END AS queue, size_bucket, list_sort(list(minutes)) AS waits,
           count(*) AS n, CASE WHEN grouping(queue) = 0 THEN 100 ELSE 400 END AS points
    FROM base_waits
    GROUP BY GROUPING SETS ((queue, size_bucket), (size_bucket))
),
spaced AS (
    SELECT *, range(0, n, CASE WHEN n <= points THEN 1 ELSE n // points + 1 END) AS ranks FROM sorted
),
shown AS (
    SELECT *, unnest(CASE WHEN ranks[-1] < n - 1 THEN list_append(ranks, n - 1) ELSE ranks END) AS i FROM spaced
)
SELECT queue, size_bucket, waits[i + 1] AS minutes, 100.0 * i / greatest(n - 1, 1) AS cdf_pct
FROM shown
ORDER BY points DESC, queue, list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket), i

-- title: Run time, cumulative
-- section: runtime
-- order: 20
-- question: How are run times distributed?
-- population: {runs} job{runs||s} of {jobs} with a known run time; y is 100 i / (n - 1) for the i-th shortest, counted from 0, as in the published notebook. At most 400 points per curve, evenly spaced in rank, including both ends.
-- detail: yes
-- column: size_bucket | GPUs | GPUs of the gang
-- column: minutes | min | run time
-- column: cdf_pct | % | share of jobs with at most this run time
-- chart: cdf x=minutes y=cdf_pct series=size_bucket scale=minutes each=GPU
--   page.title="Run time by job size" x_title="run time (logarithmic)" y_title="% of jobs that ran at most this long"
--   terminal.title="Run times by gang size" beside=runtime_by_size head=GPUs ranked=yes zero="0 s" what=runs
WITH ranked AS (
    SELECT size_bucket, minutes, row_number() OVER (PARTITION BY size_bucket ORDER BY minutes) - 1 AS i,
           count(*) OVER (PARTITION BY size_bucket) AS n
    FROM base_runs
)
SELECT size_bucket, minutes, 100.0 * i / greatest(n - 1, 1) AS cdf_pct
FROM ranked
WHERE n <= 400 OR i = n - 1 OR i % (n // 400 + 1) = 0
ORDER BY list_position(['0', '1', '2-4', '5-8', '>8', 'unknown'], size_bucket), i

-- title: Final states of the jobs
-- section: overview
-- order: 20
-- question: How many jobs pass, are killed or fail, and how much GPU time do they take?
-- population: {jobs} job{jobs||s}; gpu_hours are held from allocation to release, as in overview, users and queues. The columns gpu_hours_span, _sum and _last count from the start, as published analyses do: a job's duration under that definition times its GPUs (for a job resized while it ran, each attempt with its own GPUs); empty if no job that may have run has both. Span includes the gaps between a job's attempts and last only its last attempt, so these sums differ from gpu_hours.
-- key_columns: state, source_state, jobs, jobs_pct, gpu_hours, gpu_hours_pct, node_hours
-- column: state | - | final state, in one vocabulary for all sources; 'all' is every job
-- column: source_state | - | the source's own name of the state, without who cancelled the job
-- column: jobs | jobs | number of jobs
-- column: jobs_pct | % | share of all jobs
-- column: gpu_hours | GPU-h | held by all attempts of these jobs, from allocation to release
-- column: gpu_hours_pct | % | share of all GPU-hours
-- column: node_hours | node-h | held by attempts whose GPUs no source states: nodes times the time held
-- column: jobs_timed | jobs | jobs with a known GPU count and duration under the chosen definition
-- column: gpu_hours_span | GPU-h | GPU time from the start, duration = last attempt's end - first attempt's start (gaps between attempts count)
-- column: gpu_hours_span_pct | % | share of the total
-- column: gpu_hours_sum | GPU-h | GPU time from the start, duration = sum over attempts
-- column: gpu_hours_sum_pct | % | share of the total
-- column: gpu_hours_last | GPU-h | GPU time from the start, duration = last attempt only
-- column: gpu_hours_last_pct | % | share of the total
-- chart: bars on=page x=state series=source_state y=jobs_pct,gpu_hours_pct
--   title="Jobs and their GPU-hours by final state"
WITH by_state AS MATERIALIZED (
    SELECT CASE WHEN grouping(state) = 1 THEN 'all' ELSE state END AS state,
           CASE WHEN grouping(state) = 1 THEN NULL ELSE source_state END AS source_state,
           grouping(state) AS is_total,
           count(*) AS jobs,
           CASE WHEN held_known AND (count(gpu_s) > 0 OR NOT bool_or(may_have_run)) THEN coalesce(sum(gpu_s), 0) END::DOUBLE / 3600 AS gpu_hours,
           sum(node_s)::DOUBLE / 3600 AS node_hours,
           count(job_gpu_s) AS jobs_timed,
           CASE WHEN known AND (count(job_gpu_s_span) > 0 OR NOT bool_or(may_have_run)) THEN coalesce(sum(job_gpu_s_span), 0) END / 3600 AS gpu_hours_span,
           CASE WHEN known AND (count(job_gpu_s_sum) > 0 OR NOT bool_or(may_have_run)) THEN coalesce(sum(job_gpu_s_sum), 0) END / 3600 AS gpu_hours_sum,
           CASE WHEN known AND (count(job_gpu_s_last) > 0 OR NOT bool_or(may_have_run)) THEN coalesce(sum(job_gpu_s_last), 0) END / 3600 AS gpu_hours_last
    FROM (SELECT * REPLACE (regexp_replace(source_state, ' by [0-9]+$', '') AS source_state) FROM base_jobs)
    LEFT JOIN (SELECT job, sum(gpu_s) AS gpu_s, sum(node_s) AS node_s FROM unfiltered_held GROUP BY job) USING (job)
    CROSS JOIN (SELECT count(job_gpu_s) > 0 AS known FROM base_jobs)
    CROSS JOIN (SELECT count(gpu_s) > 0 AS held_known FROM unfiltered_held SEMI JOIN base_jobs USING (job))
    GROUP BY GROUPING SETS ((known, held_known, state, source_state), (known, held_known))
),
total AS (SELECT * FROM by_state WHERE is_total = 1)
SELECT b.state, b.source_state, b.jobs, 100.0 * b.jobs / t.jobs AS jobs_pct,
       b.gpu_hours, 100 * b.gpu_hours / nullif(t.gpu_hours, 0) AS gpu_hours_pct, b.node_hours, b.jobs_timed,
       b.gpu_hours_span, 100 * b.gpu_hours_span / nullif(t.gpu_hours_span, 0) AS gpu_hours_span_pct,
       b.gpu_hours_sum, 100 * b.gpu_hours_sum / nullif(t.gpu_hours_sum, 0) AS gpu_hours_sum_pct,
       b.gpu_hours_last, 100 * b.gpu_hours_last / nullif(t.gpu_hours_last, 0) AS gpu_hours_last_pct
FROM by_state AS b CROSS JOIN total AS t
ORDER BY b.is_total, b.jobs DESC, b.state, b.source_state

-- title: Jobs by exact size
-- section: workload
-- order: 40
-- question: How many GPUs do jobs request, and which sizes account for most of the work?
-- population: Jobs with a submission time and a size above 0, in GPUs, or in CPUs or nodes if no job has a GPU. Work is size times run time. All jobs larger than 64 are in one row, 'over 64'.
-- column: size | - | GPUs, CPUs or nodes of a job
-- column: jobs | jobs | jobs of that size
-- column: jobs_pct | % | share of the jobs
-- column: up_to_pct | % | share of the jobs up to that size
-- column: work_h | h | hours of run time times size
-- column: work_pct | % | share of the work
-- column: run_p50_s | s | median run time
-- chart: bars x=size y="jobs_pct:jobs,work_pct:work" title="Jobs and their work by size"
WITH grouped AS (
    SELECT least(size, 65) AS slot, count(*) AS jobs, sum((size * run_s)::DECIMAL(38, 6))::DOUBLE / 3600 AS work_h, median(run_s) AS run_p50_s
    FROM base_workload WHERE size > 0 GROUP BY ALL
)
SELECT CASE WHEN slot > 64 THEN 'over 64' ELSE printf('%.6g', slot) END AS size, jobs, 100.0 * jobs / sum(jobs) OVER () AS jobs_pct,
       100.0 * sum(jobs) OVER (ORDER BY slot) / sum(jobs) OVER () AS up_to_pct, work_h,
       100 * work_h / nullif(sum(work_h) OVER (ORDER BY slot ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), 0) AS work_pct, run_p50_s
FROM grouped
ORDER BY slot

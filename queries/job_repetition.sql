-- title: Repeated jobs
-- section: workload
-- order: 70
-- question: Is a user's next job like the previous one?
-- population: Jobs with a submission time, a user and a size above 0, in order of submission. A session ends when its user submits nothing for 20 minutes. Alike: same name and size; empty if no job has a name.
-- column: pairs | pairs | jobs that follow another job of the same user
-- column: same_size_pct | % | share of these with the size of the previous job
-- column: same_name_pct | % | share with the name of the previous job
-- column: like_pct | % | share with the name and size of the previous job
-- column: run_within_2_pct | % | share, among those of the same size, whose run time is half to twice the previous one
-- column: sessions | sessions | sessions of all users
-- column: session_jobs | jobs | mean number of jobs per session
-- column: single_pct | % | share of sessions with one job
-- column: seen_pct | % | share of jobs whose name and size their user had submitted before
WITH chained AS (
    SELECT name, size, run_s, submit_s, lag(size) OVER chain AS size_before, lag(name) OVER chain AS name_before, lag(run_s) OVER chain AS run_before,
           lag(submit_s) OVER chain AS submit_before, lead(submit_s) OVER chain AS submit_next
    FROM base_workload WHERE size > 0 AND "user" IS NOT NULL
    WINDOW chain AS (PARTITION BY "user" ORDER BY submit_s, job)
),
ends AS (
    SELECT *, submit_before IS NULL OR submit_s - submit_before > 1200 AS begins, submit_next IS NULL OR submit_next - submit_s > 1200 AS ends,
           name = name_before AS same_name, size = size_before AS same_size
    FROM chained
),
-- every job of a user with one name and size repeats an earlier one, except the first
seen AS (SELECT sum(jobs) AS jobs, sum(jobs - 1) AS again FROM (SELECT count(*) AS jobs FROM base_workload WHERE size > 0 AND "user" IS NOT NULL AND name IS NOT NULL GROUP BY "user", name, size))
SELECT count(submit_before) AS pairs, 100.0 * count(*) FILTER (same_size) / nullif(count(submit_before), 0) AS same_size_pct,
       100.0 * count(*) FILTER (same_name) / nullif(count(same_name), 0) AS same_name_pct,
       100.0 * count(*) FILTER (same_name AND same_size) / nullif(count(same_name), 0) AS like_pct,
       100.0 * count(*) FILTER (same_size AND run_s BETWEEN run_before / 2 AND run_before * 2) / nullif(count(*) FILTER (same_size AND run_s IS NOT NULL AND run_before IS NOT NULL), 0) AS run_within_2_pct,
       count(*) FILTER (begins) AS sessions, count(*) / nullif(count(*) FILTER (begins), 0) AS session_jobs,
       100.0 * count(*) FILTER (begins AND ends) / nullif(count(*) FILTER (begins), 0) AS single_pct,
       any_value(100.0 * seen.again / nullif(seen.jobs, 0)) AS seen_pct
FROM ends, seen
HAVING count(submit_before) > 0

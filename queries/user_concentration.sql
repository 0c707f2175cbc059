-- title: User concentration
-- section: workload
-- order: 60
-- question: Do many users share the cluster, or do a few dominate it?
-- population: Users with a job that has a submission time and a size above 0; jobs without a user are left out. Work is size times run time. Gini: 0 if all users have equal amounts, near 1 if one user has everything. The top 5 % is rounded up to whole users.
-- column: users | users | users who submitted
-- column: gini_jobs | - | Gini coefficient of users' numbers of jobs
-- column: gini_work | - | Gini coefficient of users' work
-- column: top_5_jobs_pct | % | share of jobs from the 5 % of users with the most jobs
-- column: top_5_work_pct | % | share of work from the 5 % of users with the most work
-- column: top_work_pct | % | share of the work of the user with the most work
-- column: half_work_users | users | smallest number of users with half of the work
WITH each AS (
    SELECT "user", count(*) AS jobs, coalesce(sum((size * run_s)::DECIMAL(38, 6)), 0) AS work FROM base_workload WHERE size > 0 AND "user" IS NOT NULL GROUP BY ALL
),
ranked AS (
    SELECT *, row_number() OVER (ORDER BY jobs, "user") AS by_jobs, row_number() OVER (ORDER BY work, "user") AS by_work, count(*) OVER () AS n,
           sum(work) OVER (ORDER BY work DESC, "user" DESC) AS upto, sum(work) OVER (ORDER BY work DESC, "user" DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS total
    FROM each
)
SELECT count(*) AS users, 2.0 * sum(by_jobs * jobs)::DOUBLE / (count(*) * sum(jobs)::DOUBLE) - (count(*) + 1) / count(*) AS gini_jobs,
       2 * sum(by_work * work::DECIMAL(28, 6))::DOUBLE / (count(*) * nullif(sum(work)::DOUBLE, 0)) - (count(*) + 1) / count(*) AS gini_work,
       100.0 * sum(jobs) FILTER (by_jobs > n - ceil(0.05 * n)) / sum(jobs) AS top_5_jobs_pct,
       100 * sum(work) FILTER (by_work > n - ceil(0.05 * n))::DOUBLE / nullif(sum(work)::DOUBLE, 0) AS top_5_work_pct,
       100 * max(work)::DOUBLE / nullif(sum(work)::DOUBLE, 0) AS top_work_pct, CASE WHEN any_value(total) > 0 THEN 1 + count(*) FILTER (upto * 2 < total) END AS half_work_users
FROM ranked
HAVING count(*) > 0

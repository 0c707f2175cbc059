-- title: Users' shares of jobs and work
-- section: workload
-- order: 65
-- question: What share of the jobs and of the work do the most active users have?
-- population: Users with a job that has a submission time and a size above 0; jobs without a user are left out. Work is size times run time. The share of users is rounded up to whole users; users with the most jobs and users with the most work are ranked separately.
-- column: users_pct | % | the most active users, as a share of all
-- column: users | users | the same as a number
-- column: jobs_pct | % | share of the jobs, for the users with the most jobs
-- column: work_pct | % | share of the work, for the users with the most work
-- chart: profile x=users_pct y="jobs_pct:jobs,work_pct:work" y_title="share of all" title="Share of jobs and work of the most active users"
WITH each AS (
    SELECT "user", count(*) AS jobs, coalesce(sum((size * run_s)::DECIMAL(38, 6)), 0) AS work FROM base_workload WHERE size > 0 AND "user" IS NOT NULL GROUP BY ALL
),
ranked AS (
    SELECT row_number() OVER by_jobs AS place_by_jobs, sum(jobs) OVER by_jobs AS jobs, row_number() OVER by_work AS place_by_work, sum(work) OVER by_work AS work
    FROM each
    WINDOW by_jobs AS (ORDER BY jobs DESC, "user" DESC), by_work AS (ORDER BY work DESC, "user" DESC)
),
whole AS (SELECT count(*) AS n, max(jobs)::DOUBLE AS jobs, max(work)::DOUBLE AS work FROM ranked),
points AS (
    SELECT users_pct, ceil(users_pct * n / 100)::BIGINT AS users, jobs AS all_jobs, work AS all_work
    FROM whole, (SELECT unnest([1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]) AS users_pct) WHERE n > 0
)
SELECT users_pct, users, 100 * j.jobs / all_jobs AS jobs_pct, 100 * w.work::DOUBLE / nullif(all_work, 0) AS work_pct
FROM points JOIN ranked AS j ON j.place_by_jobs = users JOIN ranked AS w ON w.place_by_work = users
ORDER BY users_pct

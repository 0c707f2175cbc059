-- title: How much smaller requests could be
-- section: utilization
-- order: 63
-- question: How much smaller could the requests of each user be, and how often would that be too little?
-- population: jobs that completed, or were stopped at their limit of time or memory (these used all of it), for which both the request and its use are known. Risk: if the next job is like these, it needs more than the k-th largest share of n jobs with a probability of k / (n + 1), whatever the distribution.
-- detail: yes
-- needs: attempts
-- column: user | - | who submitted; empty if the source names no user
-- column: resource | - | time limit; memory; CPUs (mean use: fewer slow a job down, but do not end it); GPUs (those that were ever used)
-- column: jobs | jobs | jobs with a known share
-- column: asked_p50 | - | median request: hours, GiB, CPUs or GPUs
-- column: used_p50_pct | % | median share used
-- column: used_p95_pct | % | 95th percentile of the share used
-- column: used_max_pct | % | largest share used
-- column: could_ask_pct | % | share of today's requests that is enough except for risk_pct of jobs: the k-th largest, k chosen for a risk of at most 5 %, or 1 if there are fewer than 19 jobs; empty: no less than today
-- column: risk_pct | % | probability that the next job needs more
-- column: max_risk_pct | % | the same if the user requests used_max_pct
-- column: freed | - | resources that smaller requests would have freed: hours of time limits, GiB-hours, CPU-hours or GPU-hours
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY "user", resource ORDER BY share DESC, job) AS place,
           count(*) OVER (PARTITION BY "user", resource) AS jobs, greatest(1, floor(0.05 * (jobs + 1)))::BIGINT AS k
    FROM base_used_shares
),
found AS (
    SELECT "user", resource, any_value(jobs) AS jobs, any_value(k) AS k, median(asked) AS asked_p50, 100 * median(share) AS used_p50_pct,
           100 * quantile_cont(share, 0.95) AS used_p95_pct, 100 * max(share) AS used_max_pct, 100 * max(share) FILTER (place = k) AS enough_pct, sum(held::DECIMAL(28, 6))::DOUBLE AS held
    FROM ranked
    GROUP BY ALL
)
SELECT "user", resource, jobs, asked_p50, used_p50_pct, used_p95_pct, used_max_pct, CASE WHEN enough_pct < 100 THEN enough_pct END AS could_ask_pct,
       CASE WHEN enough_pct < 100 THEN 100 * k / (jobs + 1) END AS risk_pct, CASE WHEN used_max_pct < 100 THEN 100 / (jobs + 1) END AS max_risk_pct,
       CASE WHEN enough_pct < 100 THEN held * (1 - enough_pct / 100) END AS freed
FROM found
ORDER BY "user", resource

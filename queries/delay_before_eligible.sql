-- title: Time before eligibility
-- section: delays
-- order: 50
-- question: What kept attempts from being eligible?
-- population: {delays} attempt{delays||s} with a known wait, of which {delays_ineligible} were not eligible at once. The time is exact (submission to eligibility). The reason comes from queue samples taken in that time; else from the attempt's number (a requeued attempt waits for a back-off); else from the single reason in accounting, if it is of this kind. 'not stated': the reason belongs to a later part of the wait, or there is none, as for array tasks, which become eligible in a scheduling cycle.
-- needs: attempts
-- column: category | - | hold, begin_time, dependency, array_throttle, requeue_backoff, or not stated
-- column: told_by | - | source of the reason: sample, attempt number, or accounting
-- column: source_reason | - | the scheduler's reason: the most frequent in the samples, or the reason in accounting
-- column: attempts | attempts | how many
-- column: hours | h | from submission to eligibility
-- column: p50_min | min | median of these times
-- column: p95_min | min | 95th percentile
WITH kinds(reason, category) AS (
    VALUES ('JobHeldUser', 'hold'), ('JobHeldAdmin', 'hold'), ('JobHoldMaxRequeue', 'hold'), ('BeginTime', 'begin_time'),
           ('Dependency', 'dependency'), ('DependencyNeverSatisfied', 'dependency'), ('JobArrayTaskLimit', 'array_throttle')
),
sampled AS (
    SELECT job, attempt, reason FROM base_queue_samples SEMI JOIN kinds USING (reason)
    WHERE NOT eligible
    GROUP BY job, attempt, reason
    QUALIFY row_number() OVER (PARTITION BY job, attempt ORDER BY count(*) DESC, reason) = 1
),
told AS (
    SELECT d.ineligible_s,
           CASE WHEN s.reason IS NOT NULL THEN 'sample'
                WHEN d.attempt > 0 AND coalesce(k.category, 'begin_time') = 'begin_time' THEN 'attempt number'
                WHEN k.category IS NOT NULL THEN 'accounting' END AS told_by,
           coalesce(s.reason, d.source_reason) AS source_reason, d.attempt
    FROM base_delays AS d
    LEFT JOIN sampled AS s USING (job, attempt)
    LEFT JOIN kinds AS k ON k.reason = split_part(d.source_reason, ',', 1)
    WHERE d.ineligible_s > 0
)
SELECT CASE WHEN told_by = 'attempt number' OR (attempt > 0 AND k.category = 'begin_time') THEN 'requeue_backoff'
            WHEN told_by IS NULL THEN 'not stated' ELSE k.category END AS category,
       told_by, source_reason, count(*) AS attempts, sum(ineligible_s) / 3600 AS hours,
       quantile_cont(ineligible_s, 0.5) / 60 AS p50_min, quantile_cont(ineligible_s, 0.95) / 60 AS p95_min
FROM told LEFT JOIN kinds AS k ON k.reason = split_part(source_reason, ',', 1)
GROUP BY ALL
ORDER BY hours DESC, category, told_by, source_reason

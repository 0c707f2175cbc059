-- The loss curves of one cluster's jobs, a row a point. docs/how-to/progress.md says what a point is and which metric is taken.
WITH told AS MATERIALIZED (
    SELECT p.job, least(coalesce(p.attempt, j.attempts - 1), greatest(j.attempts - 1, 0)) AS attempt, coalesce(p.stream, '') AS stream,
           coalesce(p.line_no, 0) AS line_no, p.epoch, p.step, p.metric, p.loss AS value, p.ts,
           CASE WHEN p.elapsed_s >= 0 AND p.elapsed_s < 1e9 THEN p.elapsed_s END AS elapsed_s
    FROM progress AS p JOIN base_jobs AS j USING (job)
    WHERE p.cluster = $cluster
),
-- what the names mean; parts of words are not enough: balance, force
kind AS (
    SELECT DISTINCT metric,
           regexp_matches(lower(metric), '(^|[^a-z])(val|valid|validation|validate|eval|evaluation|test|dev)([^a-z]|$|loss)') AS valid,
           regexp_matches(lower(metric), 'loss|nll|ppl|perplexity|entropy|xent|rmse|rmsle|mape|cost|criterion|objective|deviance|elbo|bpb|bpc|huber|poisson|quantile|(^|[^a-z0-9])(ce|mse|mae|l1|l2)([^a-z0-9]|$)') AS is_loss
    FROM told WHERE metric IS NOT NULL
),
chosen AS MATERIALIZED (
    SELECT job, metric, valid
    FROM (SELECT job, metric, valid, count(*) AS lines FROM told JOIN kind USING (metric) WHERE is_loss AND value IS NOT NULL GROUP BY ALL)
    QUALIFY row_number() OVER (PARTITION BY job ORDER BY valid AND lines >= 3 DESC, valid, lines DESC, metric) = 1
),
-- several ranks or streams may tell the same: of each attempt, the one that tells most
stream AS MATERIALIZED (
    SELECT job, attempt, stream
    FROM (SELECT job, attempt, stream, count(*) AS lines FROM told JOIN chosen USING (job, metric) WHERE value IS NOT NULL GROUP BY ALL)
    QUALIFY row_number() OVER (PARTITION BY job, attempt ORDER BY lines DESC, stream) = 1
),
clock AS (
    -- bars begin anew with each epoch: what they showed is added up
    SELECT job, attempt, line_no, sum(more) OVER (PARTITION BY job, attempt ORDER BY line_no) AS shown_s
    FROM (
        SELECT job, attempt, line_no,
               elapsed_s - CASE WHEN elapsed_s >= lag(elapsed_s) OVER lines THEN lag(elapsed_s) OVER lines ELSE 0 END AS more
        FROM told JOIN stream USING (job, attempt, stream)
        WHERE elapsed_s IS NOT NULL
        WINDOW lines AS (PARTITION BY job, attempt ORDER BY line_no)
    )
),
line AS MATERIALIZED (
    SELECT l.* EXCLUDE (elapsed_s), c.shown_s AS elapsed_s, row_number() OVER (PARTITION BY l.job ORDER BY l.attempt, l.line_no) AS number,
           lag(l.step) OVER (PARTITION BY l.job, l.attempt ORDER BY l.line_no) > l.step AS step_fell
    FROM (SELECT * FROM told JOIN stream USING (job, attempt, stream) JOIN chosen USING (job, metric) WHERE value IS NOT NULL) AS l
    ASOF LEFT JOIN clock AS c ON l.job = c.job AND l.attempt = c.attempt AND l.line_no >= c.line_no
),
unit AS (
    SELECT job, CASE WHEN count(DISTINCT ceil(epoch)) >= 3 THEN 'epochs' WHEN count(DISTINCT epoch) >= 3 THEN 'parts of an epoch'
                     WHEN count(DISTINCT step) >= 3 AND count(*) FILTER (step_fell) <= 2 THEN 'steps' ELSE 'lines' END AS unit
    FROM line GROUP BY job
),
place AS (
    SELECT line.*, unit, CASE unit WHEN 'epochs' THEN ceil(epoch) WHEN 'parts of an epoch' THEN epoch WHEN 'steps' THEN step ELSE number END AS pos
    FROM line JOIN unit USING (job)
),
-- a resumed job tells some epochs again, in another attempt or further down in the same log
part AS MATERIALIZED (
    SELECT *, count(*) FILTER (fell) OVER (PARTITION BY job, attempt ORDER BY line_no) AS part
    FROM (SELECT *, pos < lag(pos) OVER (PARTITION BY job, attempt ORDER BY line_no) AS fell FROM place WHERE pos IS NOT NULL)
),
part_begins AS (
    SELECT job, attempt, part, min(pos) AS begins
    FROM part GROUP BY ALL
    -- one line about an earlier epoch is a summary
    HAVING count(DISTINCT pos) > 1 OR part = 0
),
part_ends AS (
    SELECT *, min(begins) OVER (PARTITION BY job ORDER BY attempt DESC, part DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ends
    FROM part_begins
)
SELECT p.job, p.pos, any_value(p.unit) AS unit, any_value(p.metric) AS metric, bool_or(p.valid) AS valid, p.attempt,
       -- of an epoch, a validation loss as told last, a training loss as the mean of what was told
       CASE WHEN bool_or(p.valid) THEN arg_max(p.value, p.line_no) ELSE coalesce(avg(p.value) FILTER (isfinite(p.value)), 'nan'::DOUBLE) END AS value,
       max(p.ts) AS ts, max(p.elapsed_s) AS elapsed_s,
       row_number() OVER (PARTITION BY p.job ORDER BY p.pos) AS point
FROM part AS p JOIN part_ends AS e USING (job, attempt, part)
WHERE e.ends IS NULL OR p.pos < e.ends
GROUP BY p.job, p.pos, p.attempt
ORDER BY p.job, p.pos

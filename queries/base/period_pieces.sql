-- What was held in each period (base_period_cuts): one row an attempt, or container, and period. The pieces of an attempt add up to what base_held has of it.
WITH ends AS (SELECT min(begin_us) AS first_us, max(end_us) AS last_us FROM base_period_cuts),
located AS (
    SELECT s.*, c.cut AS first_cut
    FROM (SELECT spans.*, greatest(from_us, first_us) AS at_us FROM base_spans AS spans CROSS JOIN ends WHERE until_us > from_us AND until_us > first_us AND from_us < last_us) AS s
    ASOF JOIN base_period_cuts AS c ON s.at_us >= c.from_us
),
within AS (
    SELECT l.*, unnest(range(l.first_cut, c.cut + 1)) AS cut FROM located AS l ASOF JOIN base_period_cuts AS c ON l.until_us > c.from_us
)
SELECT job, "user", queue, account, outcome, cut,
       CASE WHEN w.until_us > c.end_us THEN c.end_c ELSE held_until_c END - CASE WHEN w.from_us < c.begin_us THEN c.begin_c ELSE held_from_c END AS held_s,
       (gpus * held_s)::DECIMAL(28, 6) AS gpu_s, (nodes * held_s)::DECIMAL(28, 6) AS node_s
FROM within AS w JOIN base_period_cuts AS c USING (cut)

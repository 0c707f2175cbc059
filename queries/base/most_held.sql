-- When most GPUs were held at once, and how many the known nodes have: of the whole cluster (machine NULL), and of each node on which
-- more were held than it has. Only exact numbers count for a node. At one instant GPUs are given back before they are taken.
WITH sized AS MATERIALIZED (
    SELECT machine, gpus, row_number() OVER (ORDER BY machine)::INTEGER AS nth FROM base_machines WHERE gpus IS NOT NULL AND NOT gpus_inferred
),
held AS (
    SELECT NULL::INTEGER AS nth, gpus, held_from_ts, held_until_ts FROM base_attempts WHERE held_until_ts > held_from_ts AND gpus > 0 AND NOT by_container
    UNION ALL
    SELECT NULL, gpus, held_from_ts, held_until_ts FROM base_holdings WHERE held_until_ts > held_from_ts
    UNION ALL
    SELECT m.nth, p.gpus, p.held_from_ts, p.held_until_ts
    FROM base_placements AS p JOIN sized AS m USING (machine)
    WHERE p.held_until_ts > p.held_from_ts AND p.gpus > 0 AND NOT p.by_container AND NOT coalesce(p.estimated, false)
    UNION ALL
    SELECT m.nth, h.gpus, h.held_from_ts, h.held_until_ts FROM base_holdings AS h JOIN sized AS m USING (machine) WHERE h.held_until_ts > h.held_from_ts
),
changes AS (
    SELECT nth, held_from_ts AS ts, gpus FROM held UNION ALL SELECT nth, held_until_ts, -gpus FROM held
),
-- what was taken of one is given back: sums over all in this order are sums over each, and of sorted rows DuckDB adds them up in passing
levels AS (
    SELECT nth, ts, sum(change) OVER (ROWS UNBOUNDED PRECEDING) AS held
    FROM (SELECT nth, ts, gpus::DECIMAL(28, 9) AS change FROM changes ORDER BY nth, ts, gpus)
),
most AS (SELECT nth, max(held)::DOUBLE AS held, arg_min(ts, (-held, ts)) AS ts FROM levels GROUP BY nth)
SELECT NULL::VARCHAR AS machine, most.held, total.gpus, most.ts
FROM most CROSS JOIN (SELECT sum(gpus)::DOUBLE AS gpus FROM base_machines) AS total
WHERE most.nth IS NULL
UNION ALL
SELECT machine, most.held, sized.gpus::DOUBLE, most.ts FROM most JOIN sized USING (nth) WHERE most.held > sized.gpus + 1e-6
ORDER BY machine NULLS FIRST

-- What each attempt held, from allocation to release (suspended time too: the GPUs stay allocated), cut at the borders of base_charge_cuts and split by type of GPU.
-- A MIG instance is one GPU of its own type, as sreport counts it. Typed and untyped entries of AllocTRES are the same GPUs: what the types leave of the total is 'unknown'.
WITH held AS (
    SELECT s.job, s.attempt, s."user", s.account, s.queue, s.gpus, r.billing, list_contains(string_split($forgive, ','), s.state) AS forgiven, s.from_us, s.until_us, s.held_from_c, s.held_until_c,
           coalesce(CASE WHEN NOT a.by_container THEN r.gpus_by_type END, CASE WHEN a.gpu_type IS NOT NULL AND NOT contains(a.gpu_type, ',') THEN printf('%s=%g', a.gpu_type, s.gpus) END) AS by_type
    FROM base_spans AS s JOIN (SELECT job, attempt, gpu_type, by_container FROM unfiltered_attempts) AS a USING (job, attempt) JOIN (FROM attempts WHERE cluster = $cluster) AS r USING (job, attempt)
    WHERE s.until_us > s.from_us AND (s.gpus > 0 OR (r.billing > 0 AND NOT a.by_container))
),
-- by the nodes, where the source states no type
on_nodes AS (
    SELECT job, attempt, string_agg(printf('%s=%g', gpu_type, gpus), ',' ORDER BY gpu_type) AS by_type
    FROM (
        SELECT p.job, p.attempt, m.gpu_type, sum(p.gpus) AS gpus
        FROM unfiltered_placements AS p JOIN base_machines AS m USING (machine) SEMI JOIN (FROM held WHERE by_type IS NULL) AS h ON h.job = p.job AND h.attempt = p.attempt
        WHERE m.gpu_type IS NOT NULL AND p.gpus > 0
        GROUP BY ALL
    )
    GROUP BY ALL
),
typed AS (SELECT h.* REPLACE (coalesce(h.by_type, n.by_type, '') AS by_type) FROM held AS h LEFT JOIN on_nodes AS n USING (job, attempt)),
types AS (
    SELECT by_type, gpus, lower(split_part(part, '=', 1)) AS gpu_type, split_part(part, '=', 2)::DOUBLE AS type_gpus
    FROM (SELECT by_type, gpus, unnest(string_split(by_type, ',')) AS part FROM (SELECT DISTINCT by_type, gpus FROM typed WHERE by_type <> '' AND gpus > 0))
),
sizes AS (
    SELECT t.by_type, t.gpus, coalesce(t.gpus, 0) - coalesce(s.type_gpus, 0) AS untyped_gpus
    FROM (SELECT DISTINCT by_type, gpus FROM typed) AS t
    LEFT JOIN (SELECT by_type, gpus, sum(type_gpus) AS type_gpus FROM types GROUP BY ALL) AS s ON s.by_type = t.by_type AND s.gpus = t.gpus
),
shares AS (
    SELECT by_type, gpus, gpu_type, type_gpus FROM types
    UNION ALL
    SELECT by_type, gpus, CASE WHEN gpus > 0 THEN 'unknown' END, untyped_gpus FROM sizes WHERE untyped_gpus > 0 OR coalesce(gpus, 0) = 0
),
located AS (
    SELECT t.*, c.cut AS first_cut FROM typed AS t ASOF JOIN base_charge_cuts AS c ON t.from_us >= c.from_us
),
within AS (
    SELECT l.*, unnest(range(l.first_cut, c.cut + 1)) AS cut FROM located AS l ASOF JOIN base_charge_cuts AS c ON l.until_us > c.from_us
)
SELECT w.job, w."user", w.account, w.queue, w.forgiven, w.cut, c.period, s.gpu_type,
       (CASE WHEN w.until_us > c.until_us THEN c.until_c ELSE w.held_until_c END - CASE WHEN w.from_us < c.from_us THEN c.from_c ELSE w.held_from_c END)::DECIMAL(15, 6) AS held_s,
       (held_s * coalesce(s.type_gpus, 0))::DECIMAL(26, 6) AS gpu_s,
       (held_s * coalesce(w.billing, 0) * CASE WHEN w.gpus > 0 THEN s.type_gpus / w.gpus ELSE 1 END)::DECIMAL(26, 6) AS billing_s, w.billing IS NOT NULL AS is_billed
FROM within AS w JOIN base_charge_cuts AS c USING (cut) JOIN shares AS s ON s.by_type = w.by_type AND s.gpus IS NOT DISTINCT FROM w.gpus

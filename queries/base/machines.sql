-- The nodes of one cluster: those of the lists, and those that jobs ran on. GPUs are the larger of the label and the
-- highest index seen in use + 1; where a source has neither, the most that jobs held there at once (a lower bound).
WITH listed AS (
    SELECT machine, rack, gpu_type, gpus, gpus_labelled, gpus_observed, gpu_mem_mb FROM machines WHERE cluster = $cluster
),
-- numbered: windows over millions of changes sort numbers sooner than names
unsized AS MATERIALIZED (
    SELECT machine, row_number() OVER ()::INTEGER AS nth
    FROM (SELECT DISTINCT machine FROM base_placements ANTI JOIN (SELECT machine FROM listed WHERE gpus IS NOT NULL) USING (machine))
),
changes AS (
    SELECT nth, held_from_c AS at_c, p.gpus FROM base_placements AS p JOIN unsized USING (machine) WHERE held_until_c > held_from_c AND NOT by_container
    UNION ALL
    SELECT nth, held_until_c, -p.gpus FROM base_placements AS p JOIN unsized USING (machine) WHERE held_until_c > held_from_c AND NOT by_container
    UNION ALL
    SELECT nth, held_from_c, h.gpus FROM base_holdings AS h JOIN unsized USING (machine) WHERE held_until_c > held_from_c
    UNION ALL
    SELECT nth, held_until_c, -h.gpus FROM base_holdings AS h JOIN unsized USING (machine) WHERE held_until_c > held_from_c
),
levels AS (
    -- at one instant GPUs are given back before they are taken
    SELECT nth, gpus, sum(gpus) OVER (PARTITION BY nth ORDER BY at_c, gpus ROWS UNBOUNDED PRECEDING) AS held FROM changes
),
-- shares of GPUs are sums of fractions
reached AS (SELECT nth, held, count(*) FILTER (gpus > 0) AS times, min(gpus) FILTER (gpus > 0) AS gang FROM levels GROUP BY nth, held),
most AS (
    SELECT machine, ceil(max(held) - 1e-6)::INTEGER AS gpus, arg_max(times, held) AS times, min(ceil(min(gang))) OVER ()::INTEGER AS gang
    FROM reached JOIN unsized USING (nth) GROUP BY machine
),
models AS (
    SELECT machine, any_value(held_gpu_type) AS gpu_type
    FROM base_placements SEMI JOIN unsized USING (machine)
    WHERE held_gpu_type IS NOT NULL
    GROUP BY machine
    HAVING count(DISTINCT held_gpu_type) = 1
)
SELECT machine, listed.rack, coalesce(listed.gpu_type, models.gpu_type) AS gpu_type, coalesce(listed.gpus, most.gpus) AS gpus,
       listed.gpus_labelled, listed.gpus_observed, listed.gpu_mem_mb, listed.gpus IS NULL AND most.gpus IS NOT NULL AS gpus_inferred,
       -- an inferred size that was reached often leaves room for less than the smallest gang; else it may be that of any other node
       -- of its type, or the next power of two
       CASE WHEN listed.gpus IS NOT NULL OR most.gpus IS NULL THEN coalesce(listed.gpus, most.gpus) WHEN most.times >= 5 THEN most.gpus + most.gang - 1
            ELSE greatest(most.gpus + most.gang - 1, 2 ** ceil(log2(greatest(most.gpus, 1))),
                          max(coalesce(listed.gpus, most.gpus)) OVER (PARTITION BY coalesce(listed.gpu_type, models.gpu_type))) END::INTEGER AS gpus_most
FROM listed FULL JOIN unsized USING (machine) LEFT JOIN most USING (machine) LEFT JOIN models USING (machine)
ORDER BY machine

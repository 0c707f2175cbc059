-- The nodes of each attempt, each once and in order. Most attempts have one: a list is made with less work from it than from all of them.
WITH ends AS (
    SELECT job, attempt, min(machine) AS first, max(machine) AS last FROM base_placements GROUP BY ALL
),
several AS (
    SELECT job, attempt, list_sort(list_distinct(list(machine))) AS machines
    FROM base_placements SEMI JOIN (FROM ends WHERE first <> last) USING (job, attempt)
    GROUP BY ALL
)
SELECT job, attempt, CASE WHEN first = last THEN [first] ELSE s.machines END AS machines
FROM ends LEFT JOIN several AS s USING (job, attempt)

-- Sources with rejected rows by file name, and the most frequent reason of each.
SELECT regexp_extract(path, '[^/]*$') AS path, rows_in, rows_rejected, reason, rows
FROM sources JOIN (
    SELECT source, reason, count(*) AS rows, row_number() OVER (PARTITION BY source ORDER BY count(*) DESC, reason) AS rank
    FROM rejects
    GROUP BY source, reason
) USING (source)
WHERE cluster = $cluster AND rank = 1
ORDER BY source

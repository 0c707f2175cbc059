-- title: Files in the store
-- section: quality
-- order: 20
-- question: Which files were loaded, and how many of their rows were rejected?
-- population: every file of cluster {cluster}; rows in = rows loaded + rows already in the store + rows rejected.
-- detail: yes
-- column: path | - | the file; archive!member for members of archives
-- column: format | - | the log format as which it was read
-- column: bytes | bytes | its size before decompression
-- column: rows_in | rows | lines, records or objects in it
-- column: rows_loaded | rows | rows loaded into the store
-- column: rows_already_stored | rows | rows already in the store with the same content: from another file, or earlier in this one
-- column: rows_rejected | rows | rows that could not be read, or contradict rows in the store
-- column: most_rejected_for | - | the most frequent reason for rejection
SELECT path, format, bytes, rows_in, rows_loaded, rows_already_stored, rows_rejected, reason AS most_rejected_for
FROM sources LEFT JOIN (
    SELECT source, reason, row_number() OVER (PARTITION BY source ORDER BY count(*) DESC, reason) AS rank
    FROM rejects
    GROUP BY source, reason
) AS most ON most.source = sources.source AND rank = 1
WHERE cluster = $cluster
ORDER BY sources.source

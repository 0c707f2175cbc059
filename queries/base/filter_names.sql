-- What jobs may be chosen by.
SELECT (SELECT list(DISTINCT "user" ORDER BY "user") FROM jobs WHERE cluster = $cluster AND "user" IS NOT NULL) AS user,
       (SELECT list(DISTINCT coalesce(queue, '(none)') ORDER BY coalesce(queue, '(none)')) FROM jobs WHERE cluster = $cluster) AS queue,
       (SELECT list(DISTINCT account ORDER BY account) FROM jobs WHERE cluster = $cluster AND account IS NOT NULL) AS account

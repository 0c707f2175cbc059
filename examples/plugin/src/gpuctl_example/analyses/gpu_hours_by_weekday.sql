-- title: GPU-hours by day of the week
-- section: utilization
-- question: On which days of the week are GPUs held?
-- population: {attempts} attempts less {attempts_without_start} without a start; an attempt counts on the day (UTC) on which it starts.
-- needs: attempts
-- column: weekday | - | 1 (Monday) to 7 (Sunday)
-- column: attempts | attempts | how many start on it
-- column: gpu_hours | GPU-h | GPUs times the time that they hold them
-- chart: bars x=weekday y=gpu_hours title="GPU-hours by the weekday of the start"
SELECT isodow(start_ts)::VARCHAR AS weekday, count(*) AS attempts,
       sum((gpus * (held_until_c - held_from_c) / 3600)::DECIMAL(28, 9))::DOUBLE AS gpu_hours
FROM base_attempts
WHERE start_ts IS NOT NULL
GROUP BY ALL
ORDER BY weekday

-- title: GPU-hours here and in sreport
-- section: quality
-- order: 16
-- question: Do the charged GPU-hours agree with those of sreport, account by account?
-- population: figures of sreport for gres/gpu (gpuctl ingest reads its reports by cluster and by user), and gpuctl's figures for the same attempts over the same period, regardless of filters. GPU-hours here run from start to release, as sreport counts them.
-- detail: yes
-- needs: attempts
-- column: from_ts | UTC | beginning of the report's period
-- column: to_ts | UTC | its end
-- column: account | - | the account; root, or empty: the whole cluster
-- column: user | - | the user; empty: all of the account, with its sub-accounts
-- column: sreport_gpu_hours | GPU-h | according to sreport
-- column: gpu_hours | GPU-h | the same attempts here
-- column: difference_gpu_hours | GPU-h | gpu_hours - sreport_gpu_hours
-- column: difference_pct | % | the same, over sreport_gpu_hours
-- column: rounding_gpu_hours | GPU-h | possible rounding by sreport
-- column: running_gpu_hours | GPU-h | part of gpu_hours held by running jobs: sreport counts only their full hours
-- column: covered_pct | % | share of the period between the first submission and the end of the log
-- column: verdict | - | agrees: within 0.5 %, 60 GPU-seconds or the rounding; rolled up: the difference is no larger than running_gpu_hours; not covered: the log has less than 95 % of the period; differs: a finding. sreport also splits idle time of reservations among accounts, and counts jobs that ended unnoticed (sacctmgr show runaway)
SELECT from_ts, to_ts, account, login AS "user", stated_gpu_s / 3600 AS sreport_gpu_hours, gpu_s / 3600 AS gpu_hours, (gpu_s - stated_gpu_s) / 3600 AS difference_gpu_hours,
       100 * (gpu_s - stated_gpu_s) / nullif(stated_gpu_s, 0) AS difference_pct, rounding_s / 3600 AS rounding_gpu_hours, running_gpu_s / 3600 AS running_gpu_hours, 100 * covered AS covered_pct,
       CASE WHEN abs(gpu_s - stated_gpu_s) <= greatest(60, rounding_s, 0.005 * stated_gpu_s) THEN 'agrees'
            WHEN covered < 0.95 THEN 'not covered'
            WHEN gpu_s - stated_gpu_s BETWEEN 0 AND running_gpu_s + rounding_s THEN 'rolled up' ELSE 'differs' END AS verdict
FROM base_stated_usage
ORDER BY from_ts, to_ts, account NULLS FIRST, login NULLS FIRST

-- title: Every failed attempt
-- section: failures
-- order: 130
-- question: Why did each attempt fail, and which line shows it?
-- population: {failures} failed attempt{failures||s}, as in failure_reasons.
-- needs: attempts
-- detail: yes
-- column: job | - | the source's job id
-- column: attempt | - | number of the attempt, from 0
-- column: queue | - | queue or virtual cluster
-- column: user | - | who submitted
-- column: gpus | GPUs | GPUs of the attempt
-- column: machines | - | where it ran
-- column: start_ts | UTC | its start
-- column: rtf_s | s | run time to failure: how long it held its GPUs
-- column: gpu_hours | GPU-h | held
-- column: state | - | the scheduler's final state of the attempt
-- column: job_state | - | final state of its job
-- column: reason | - | why it failed: a name, as in gpuctl classify
-- column: category | - | possible origin
-- column: confidence | - | of the verdict, 0 to 1
-- column: signature | - | the deciding signature; empty if the scheduler gave the reason
-- column: stream | - | the log with the evidence; 'scheduler': the scheduler's own reason
-- column: line_no | - | line of the evidence
-- column: evidence | - | the line itself
-- column: other_reasons | - | other reasons in its logs, the strongest first
-- column: has_log | - | whether a log of the attempt is in the store
SELECT job, attempt, queue, "user", gpus, machines, start_ts, rtf_s, gpu_hours, state, job_state, reason, category, confidence, signature, stream, line_no, evidence,
       others AS other_reasons, has_log
FROM base_failures
ORDER BY job, attempt

-- title: Interrupted attempts and their causes
-- section: reliability
-- order: 20
-- question: What ended this attempt?
-- population: Attempts that held GPUs, are over, and neither completed nor were cancelled; causes as in interruptions.
-- needs: placements
-- detail: yes
-- column: job | - | the job's id, 12_3 of a task
-- column: attempt | - | number of the attempt, from 0
-- column: end_ts | - | when it ended (UTC)
-- column: user | - | its user
-- column: gpus | GPUs | its GPUs
-- column: machines | nodes | its nodes
-- column: state | - | the scheduler's word
-- column: cause | - | what ended it
-- column: component | - | what failed; of user_program, the log's reason; empty: not known
-- column: evidence | - | what shows it: state, log, event, xid, counter (telemetry of GPUs), co_occurrence, repeats; empty: nothing
-- column: machine | - | node to which the evidence points
-- column: incident | - | number of the fault, by time; attempts of one number met one fault
-- column: second_order | - | whether it was preempted by a job that infrastructure had ended before
SELECT shown AS job, attempt, end_ts, "user", gpus, machines, state, cause, component, evidence, machine, incident,
       second_order
FROM base_reliability_interrupted_attempts
ORDER BY position

-- title: Effective training time of runs
-- section: reliability
-- order: 50
-- question: Which share of a run's time trained the model?
-- population: Runs: attempts joined by requeue, dependency, tasks of an array that run one at a time, and resubmission within a day of a job of the same user, name and size. Runs of several attempts, and those of at least a whole node; the 10,000 that held the most GPU-hours. Measured: steps and checkpoints in logs with stamps. Else productive time is the middle of a range: checkpoints up to 4 h apart, loads up to 15 minutes, writes up to a tenth.
-- needs: placements
-- first_columns: 10
-- column: run | - | the job's name
-- column: user | - | its user
-- column: gpus | GPUs | its size
-- column: link | - | the weakest link between attempts: single, requeue, array, dependency, resubmit
-- column: attempts | attempts | of the run
-- column: jobs | jobs | of the run
-- column: queue_h | h | waited, since eligible and since the attempt before it ended
-- column: gap_h | h | from an end to the next submission; no part of ETTR
-- column: run_h | h | run
-- column: productive_h | h | work that is in the final state
-- column: checkpoint_h | h | checkpoints' writes
-- column: load_h | h | from start to first step
-- column: lost_h | h | work done and lost
-- column: stalled_h | h | after the last step printed, or dead and not yet noticed
-- column: interruptions | attempts | ended by infrastructure
-- column: ettr | - | productive over queue and run
-- column: ettr_low | - | lower end
-- column: ettr_high | - | upper end
-- column: ettr_running | - | productive over run
-- column: checkpoint_s | s | work between checkpoints
-- column: write_s | s | for which a checkpoint blocks
-- column: basis | - | measured, estimated (logs without stamps) or modelled (no logs)
-- column: model_ettr | - | expected ettr_running by Daly's formula, at the rate of its nodes
-- column: linear_ettr | - | by the linear formula of Kokolis et al., for comparison; empty where it does not hold
SELECT run, "user", gpus, link, attempts, jobs, queue_h, gap_h, run_h, productive_h, checkpoint_h, load_h, lost_h,
       stalled_h, interruptions, ettr, ettr_low, ettr_high, ettr_running, checkpoint_s, write_s, basis, model_ettr,
       linear_ettr
FROM base_reliability_ettr
ORDER BY position

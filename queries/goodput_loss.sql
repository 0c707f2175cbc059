-- title: Where the GPU-hours went
-- section: reliability
-- order: 60
-- question: Which GPU-hours were productive, and how were the others lost?
-- population: GPUs of all nodes times the window: each GPU-hour in one row. Lost work is measured from logs; else between half an hour for each end (a checkpoint an hour) and all of the attempt: the low end for runs of several attempts, the high end for others. Without a log, loading, writing checkpoints and stalls count as productive; the ranges allow for 15 minutes of loading a start, a tenth of the run time for checkpoints, and stalls of all that may be lost. Attempts of unknown cause widen the high end of lost_infrastructure.
-- needs: placements
-- column: kind | - | class; all: the capacity
-- column: gpu_hours | GPU-h | of the class
-- column: gpu_hours_low | GPU-h | lower end
-- column: gpu_hours_high | GPU-h | upper end
-- column: pct | % | of the capacity
-- column: basis | - | measured, or what was assumed
-- chart: bars x=kind y=gpu_hours title="GPU-hours by class" where=kind:productive,checkpoint,load,stalled,lost_infrastructure,lost_second_order,lost_preempted,lost_user_program,lost_time_limit,lost_user_cancel,lost_unknown,down_unplanned,down_planned,idle
SELECT kind, gpu_hours, gpu_hours_low, gpu_hours_high, pct, basis
FROM base_reliability_goodput_loss
ORDER BY position

package org.apache.hadoop.yarn.server.resourcemanager.monitor.capacity;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.yarn.server.resourcemanager.RMContext;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler;
import org.apache.hadoop.yarn.util.Clock;

/** Hadoop's own preemption monitor on the driver's clock; `rows` are what its last round thought. */
public class LabMonitor extends ProportionalCapacityPreemptionPolicy {
  public LabMonitor(RMContext context, CapacityScheduler scheduler, Clock clock) {
    super(context, scheduler, clock);
  }

  /** A queue of the last round: what it has, is guaranteed, waits for, is to have, is to lose (all with their units). */
  public List<Object[]> rows() {
    List<Object[]> rows = new ArrayList<>();
    for (Map.Entry<String, Map<String, TempQueuePerPartition>> queue : new TreeMap<>(getQueuePartitions()).entrySet()) {
      TempQueuePerPartition q = queue.getValue().get("");
      if (q != null) {
        rows.add(new Object[] {queue.getKey(), q.getGuaranteed(), q.getUsed(), q.getPending(), q.getReserved(),
            q.idealAssigned, q.toBePreempted, q.getActuallyToBePreempted()});
      }
    }
    return rows;
  }
}

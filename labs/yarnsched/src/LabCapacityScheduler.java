package org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ContainerAllocationProposal;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.ResourceCommitRequest;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerApp;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.common.fica.FiCaSchedulerNode;

/** Hadoop's own CapacityScheduler, unchanged, which also tells the driver what it committed, in order. */
public class LabCapacityScheduler extends CapacityScheduler {
  /** A committed allocation and the locality that the scheduler itself says it has. */
  public record Commit(RMContainer container, String locality) {}

  /** Since the driver last emptied it. */
  public final List<Commit> commits = new ArrayList<>();

  @Override
  @SuppressWarnings("unchecked")
  public boolean tryCommit(Resource cluster, ResourceCommitRequest request, boolean updatePending) {
    boolean done = super.tryCommit(cluster, request, updatePending);
    if (done && request.anythingAllocatedOrReserved()) {
      ContainerAllocationProposal<FiCaSchedulerApp, FiCaSchedulerNode> first =
          ((ResourceCommitRequest<FiCaSchedulerApp, FiCaSchedulerNode>) request).getFirstAllocatedOrReservedContainer();
      commits.add(new Commit(first.getAllocatedOrReservedContainer().getRmContainer(),
          String.valueOf(first.getAllocationLocalityType())));
    }
    return done;
  }
}

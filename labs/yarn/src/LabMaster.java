import java.io.IOException;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;

/**
 * Application master of a gang: asks for all containers, starts them once it holds them all, waits for them,
 * and writes down what it saw. A container that was preempted or lost with its node is asked for again.
 */
public final class LabMaster {
  private static final int PREEMPTED = -102;
  private static final int ABORTED = -100;

  private final Job job;
  private final Events events;
  private final AMRMClient<ContainerRequest> rm = AMRMClient.createAMRMClient();
  private final NMClient nodes = NMClient.createNMClient();
  private final Map<ContainerId, ContainerRequest> asked = new HashMap<>();
  private final List<ContainerRequest> open = new ArrayList<>();
  private final List<Container> held = new ArrayList<>();
  private ContainerId failing;
  private int done;
  private boolean failed;

  private LabMaster(Job job, Events events) {
    this.job = job;
    this.events = events;
  }

  public static void main(String[] args) throws Exception {
    ContainerId own = ContainerId.fromString(System.getenv("CONTAINER_ID"));
    Job job = new Job(System.getenv("LAB_JOB"));
    String attempt = own.getApplicationAttemptId().toString();
    try (Events events = new Events(Paths.get(System.getenv("LAB_EVENTS"), attempt + ".jsonl"))) {
      events.write("master", "attempt", attempt, "container", own.toString(), "host", System.getenv("NM_HOST"));
      if (job.list("crash").contains(String.valueOf(own.getApplicationAttemptId().getAttemptId()))) {
        Thread.sleep(500);
        events.write("crash", "exit", 1);
        System.err.println("told to crash in this attempt");
        System.exit(1);
      }
      new LabMaster(job, events).run();
    }
    System.exit(0);
  }

  private void run() throws Exception {
    YarnConfiguration conf = new YarnConfiguration();
    conf.setLong(YarnConfiguration.RM_AM_EXPIRY_INTERVAL_MS, 60_000);
    rm.init(conf);
    rm.start();
    nodes.init(conf);
    nodes.start();
    rm.registerApplicationMaster(System.getenv("NM_HOST"), 0, "");
    events.write("registered");
    int wanted = (int) job.number("containers", 1);
    for (int i = 0; i < wanted; i++) {
      ask();
    }
    events.write("asked", "containers", wanted, "gpus", job.number("gpus", 0));
    while (done < wanted) {
      AllocateResponse answer = rm.allocate(done / (float) wanted);
      for (Container container : answer.getAllocatedContainers()) {
        take(container);
      }
      if (open.isEmpty() && held.size() + done == wanted) {
        startAll();
      }
      for (ContainerStatus status : answer.getCompletedContainersStatuses()) {
        completed(status);
      }
      Thread.sleep(200);
    }
    FinalApplicationStatus result = failed ? FinalApplicationStatus.FAILED : FinalApplicationStatus.SUCCEEDED;
    events.write("unregister", "final_status", result.toString());
    rm.unregisterApplicationMaster(result, failed ? "a worker failed, says \"LabMaster\"" : "", "");
    rm.stop();
  }

  private void ask() {
    Resource size = Resource.newInstance((int) job.number("mem", 256), (int) job.number("vcores", 1));
    if (job.number("gpus", 0) > 0) {
      size.setResourceValue("yarn.io/gpu", job.number("gpus", 0));
    }
    List<String> on = job.list("nodes");
    ContainerRequest request = on.isEmpty()
        ? new ContainerRequest(size, null, null, Priority.newInstance(1))
        : new ContainerRequest(size, on.toArray(new String[0]), null, Priority.newInstance(1), false);
    rm.addContainerRequest(request);
    open.add(request);
  }

  private void take(Container container) throws Exception {
    if (open.isEmpty()) {
      rm.releaseAssignedContainer(container.getId());
      events.write("released", "container", container.getId().toString(),
          "host", container.getNodeId().getHost());
      return;
    }
    ContainerRequest request = open.remove(0);
    rm.removeContainerRequest(request);
    asked.put(container.getId(), request);
    held.add(container);
    Resource size = container.getResource();
    events.write(
        "allocated", "container", container.getId().toString(), "host", container.getNodeId().getHost(),
        "mem_mb", size.getMemorySize(), "vcores", size.getVirtualCores(),
        "gpus", job.number("gpus", 0) > 0 ? size.getResourceValue("yarn.io/gpu") : 0);
  }

  private void startAll() throws Exception {
    for (Container container : new ArrayList<>(held)) {
      if (asked.remove(container.getId()) == null) {
        continue;
      }
      long code = failing == null || failing.equals(container.getId()) ? job.number("exit", 0) : 0;
      String command = "sleep " + job.number("seconds", 1) + "; exit " + code;
      try {
        nodes.startContainer(container, ContainerLaunchContext.newInstance(
            null, null, Collections.singletonList(command), null, null, null));
      } catch (YarnException | IOException error) {
        // a restarted ResourceManager knows nothing of containers that were not started yet, nor has it nodes take them
        events.write("not_started", "container", container.getId().toString(), "why", error.getMessage());
        held.remove(container);
        rm.releaseAssignedContainer(container.getId());
        ask();
        continue;
      }
      failing = failing == null ? container.getId() : failing;
      events.write("started", "container", container.getId().toString());
    }
  }

  private void completed(ContainerStatus status) throws Exception {
    boolean ours = held.removeIf(container -> container.getId().equals(status.getContainerId()));
    asked.remove(status.getContainerId());
    int code = status.getExitStatus();
    events.write("completed", "container", status.getContainerId().toString(), "exit", code,
        "diagnostics", status.getDiagnostics());
    if (!ours) {
      return;
    }
    if (code == PREEMPTED || code == ABORTED) {
      ask();
      return;
    }
    done++;
    failed |= code != 0;
  }
}

import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateRequest;
import org.apache.hadoop.yarn.api.protocolrecords.FinishApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.GetNewApplicationRequest;
import org.apache.hadoop.yarn.api.protocolrecords.RegisterApplicationMasterRequest;
import org.apache.hadoop.yarn.api.protocolrecords.SubmitApplicationRequest;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptId;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.ResourceRequest;
import org.apache.hadoop.yarn.security.AMRMTokenIdentifier;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.RMApp;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttempt;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEvent;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptEventType;
import org.apache.hadoop.yarn.server.resourcemanager.rmapp.attempt.RMAppAttemptState;
import org.apache.hadoop.yarn.server.resourcemanager.rmcontainer.RMContainer;
import org.apache.hadoop.yarn.server.resourcemanager.scheduler.SchedulerApplicationAttempt;

/** An application: its client and its master, which asks for all its containers at once and again for those it loses. */
final class App {
  final int number;
  final String name;
  final long submitMs;
  final String queue;
  final String user;
  final long durationMs;
  private final int priority;
  private final long amMb;
  private final int containers;
  private final Resource size;
  private final List<String> hosts;
  private final LabRM rm;
  private final Set<ContainerId> live = new HashSet<>();
  ApplicationId id;
  boolean over;
  String state = "";
  String why = "";
  private ApplicationAttemptId attemptId;
  private UserGroupInformation ugi;
  private ContainerId master;
  private int completed;
  private int toAsk;
  private int answer;
  private boolean registered;
  private boolean finished;

  App(LabRM rm, int number, String[] cells) {
    this.rm = rm;
    this.number = number;
    name = cells[0];
    submitMs = Long.parseLong(cells[1]);
    queue = cells[2];
    user = cells[3];
    priority = Integer.parseInt(cells[4]);
    amMb = Long.parseLong(cells[5]);
    containers = Integer.parseInt(cells[6]);
    size = Shares.resource(Long.parseLong(cells[7]), Integer.parseInt(cells[8]), Long.parseLong(cells[9]));
    durationMs = Long.parseLong(cells[10]);
    hosts = cells[11].isEmpty() ? List.of() : List.of(cells[11].split(" "));
    toAsk = containers;
  }

  /** Whether its master holds no container (YARN's unmanaged application masters). */
  boolean unmanaged() {
    return amMb == 0;
  }

  /** Returns why it was refused at once, or null. */
  String submit() {
    try {
      UserGroupInformation client = UserGroupInformation.createRemoteUser(user);
      return client.doAs((PrivilegedExceptionAction<String>) () -> {
        id = rm.getClientRMService().getNewApplication(GetNewApplicationRequest.newInstance()).getApplicationId();
        if (id.getId() != number + 1) {
          throw new IllegalStateException("workload.csv is not in the order of submission: " + name);
        }
        attemptId = ApplicationAttemptId.newInstance(id, 1);
        ApplicationSubmissionContext context = ApplicationSubmissionContext.newInstance(
            id, name, queue, Priority.newInstance(priority),
            ContainerLaunchContext.newInstance(new HashMap<>(), new HashMap<>(), new ArrayList<>(), null, null, new HashMap<>()),
            unmanaged(), true, 1, Shares.resource(Math.max(amMb, 1), 1, 0), "LAB", false);
        try {
          rm.getClientRMService().submitApplication(SubmitApplicationRequest.newInstance(context));
        } catch (org.apache.hadoop.yarn.exceptions.YarnException refused) {
          return String.valueOf(refused.getMessage());
        }
        return null;
      });
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  /** What the scheduler knows of it, or null. */
  SchedulerApplicationAttempt attempt() {
    return attemptId == null ? null : rm.scheduler().getApplicationAttempt(attemptId);
  }

  /** Note a container that the scheduler gave it; returns whether it is its master's. */
  boolean allocated(RMContainer container) {
    if (container.isAMContainer() || !unmanaged() && master == null) {
      master = container.getContainerId();
      return true;
    }
    live.add(container.getContainerId());
    return false;
  }

  void released(RMContainer container, String why) {
    if (live.remove(container.getContainerId())) {
      if (why.equals("completed")) {
        completed++;
      } else {
        toAsk++;
      }
    }
  }

  boolean masterEnded(ContainerId container) {
    return finished && container.equals(master);
  }

  String locality(Node node) {
    if (hosts.isEmpty()) {
      return "OFF_SWITCH";
    }
    return hosts.contains(node.name) ? "NODE_LOCAL" : Places.rack(hosts).contains(node.rack) ? "RACK_LOCAL" : "OFF_SWITCH";
  }

  /** One heartbeat of the master, or the start of one whose container is there. */
  void beat() {
    RMApp app = rm.getRMContext().getRMApps().get(id);
    RMAppAttempt attempt = app.getCurrentAppAttempt();
    String before = app.getState().name();
    if (List.of("FAILED", "KILLED", "FINISHED").contains(before)) {
      state = before;
      why = String.valueOf(app.getDiagnostics()).trim();
      over = true;
      return;
    }
    if (attempt == null || finished) {
      return;
    }
    if (attempt.getAppAttemptState() == RMAppAttemptState.ALLOCATED) {
      rm.getRMContext().getDispatcher().getEventHandler().handle(
          new RMAppAttemptEvent(attemptId, RMAppAttemptEventType.LAUNCHED, SchedLab.START_MS));
      rm.drain();
    }
    if (attempt.getAppAttemptState() == RMAppAttemptState.LAUNCHED && !registered) {
      registered = true;
      state = "REGISTERED";
      as(() -> rm.getApplicationMasterService().registerApplicationMaster(
          RegisterApplicationMasterRequest.newInstance("localhost", 0, "")));
      rm.drain();
    }
    if (!registered) {
      return;
    }
    if (completed == containers) {
      finished = true;
      as(() -> rm.getApplicationMasterService().finishApplicationMaster(
          FinishApplicationMasterRequest.newInstance(FinalApplicationStatus.SUCCEEDED, "", "")));
      return;
    }
    List<ResourceRequest> asks = new ArrayList<>();
    if (toAsk > 0) {
      ask(asks);
      toAsk = 0;
    }
    AllocateRequest request = AllocateRequest.newInstance(answer, 0f, asks, List.of(), null);
    as(() -> {
      answer = rm.getApplicationMasterService().allocate(request).getResponseId();
      return null;
    });
  }

  /** Requests are totals: as many as still wait, and those to come. */
  private void ask(List<ResourceRequest> asks) {
    Map<String, Integer> waiting = new HashMap<>();
    for (ResourceRequest old : attempt().getAppSchedulingInfo().getAllResourceRequests()) {
      if (old.getPriority().getPriority() == 1) {
        waiting.put(old.getResourceName(), old.getNumContainers());
      }
    }
    List<String> names = new ArrayList<>(hosts);
    names.addAll(new TreeSet<>(Places.rack(hosts)));
    names.add(ResourceRequest.ANY);
    for (String place : names) {
      int count = waiting.getOrDefault(place, 0) + toAsk;
      asks.add(ResourceRequest.newInstance(Priority.newInstance(1), place, size, count, true));
    }
  }

  private void as(PrivilegedExceptionAction<Object> what) {
    try {
      if (ugi == null) {
        Token<AMRMTokenIdentifier> token =
            rm.getRMContext().getAMRMTokenSecretManager().createAndGetAMRMToken(attemptId);
        ugi = UserGroupInformation.createRemoteUser(attemptId.toString());
        ugi.addTokenIdentifier(token.decodeIdentifier());
      }
      ugi.doAs(what);
    } catch (Exception error) {
      throw new IllegalStateException(name, error);
    }
  }
}

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.yarn.api.records.ApplicationAttemptReport;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationReport;
import org.apache.hadoop.yarn.api.records.ApplicationResourceUsageReport;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.api.records.YarnApplicationState;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.client.api.YarnClientApplication;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;

/**
 * Submits the jobs of a plan one after another when each is due, as its user, kills those that are to be killed, follows them
 * all until they end (but for those that are to be left running), and writes down what it saw.
 *
 * <p>Arguments: plan file, events file, limit in seconds.
 */
public final class LabClient {
  private static final class Run {
    Job job;
    ApplicationId app;
    YarnClient client;
    YarnApplicationState seen;
    boolean killed;
    boolean whole;
    boolean over;
  }

  private final Events events;
  private final Map<String, YarnClient> clients = new HashMap<>();
  private final YarnConfiguration conf = new YarnConfiguration();

  private LabClient(Events events) {
    this.events = events;
  }

  public static void main(String[] args) throws Exception {
    List<Job> plan = new ArrayList<>();
    for (String line : Files.readAllLines(Paths.get(args[0]), StandardCharsets.UTF_8)) {
      plan.add(new Job(line));
    }
    try (Events events = new Events(Paths.get(args[1]))) {
      new LabClient(events).run(plan, Long.parseLong(args[2]));
    }
    System.exit(0);
  }

  private void run(List<Job> plan, long limitS) throws Exception {
    List<Run> runs = new ArrayList<>();
    long begin = System.currentTimeMillis();
    events.write("begin", "jobs", plan.size());
    int next = 0;
    while (next < plan.size() || runs.stream().anyMatch(run -> !run.over && run.job.number("open", 0) == 0)) {
      long now = System.currentTimeMillis() - begin;
      if (now > limitS * 1000) {
        throw new IllegalStateException("not all jobs ended within " + limitS + " s");
      }
      for (; next < plan.size() && due(plan.get(next), now, runs); next++) {
        runs.add(submit(plan.get(next)));
      }
      for (Run run : runs) {
        follow(run);
      }
      Thread.sleep(100);
    }
    for (Run run : runs) {
      report(run);
    }
    events.write("end");
  }

  /** Whether its time has come, those it comes after are over, and the one it is behind holds its whole gang. */
  private static boolean due(Job job, long now, List<Run> runs) {
    String behind = job.text("behind", "");
    for (Run run : runs) {
      String key = run.job.text("key", "");
      boolean after = job.list("after").contains(key) || job.list("after").contains("*");
      if ((after && !run.over) || (behind.equals(key) && !run.over && !run.whole)) {
        return false;
      }
    }
    return job.number("at", 0) * 1000 <= now;
  }

  private YarnClient clientOf(String user) throws Exception {
    YarnClient known = clients.get(user);
    if (known != null) {
      return known;
    }
    YarnClient client = UserGroupInformation.createRemoteUser(user).doAs(
        (PrivilegedExceptionAction<YarnClient>) () -> {
          YarnClient made = YarnClient.createYarnClient();
          made.init(conf);
          made.start();
          return made;
        });
    clients.put(user, client);
    return client;
  }

  private Run submit(Job job) throws Exception {
    String user = job.text("user", "alice");
    Run run = new Run();
    run.job = job;
    run.client = clientOf(user);
    YarnClientApplication made = run.client.createApplication();
    ApplicationSubmissionContext context = made.getApplicationSubmissionContext();
    run.app = context.getApplicationId();
    context.setApplicationName(job.text("name", job.text("key", "")));
    context.setApplicationType("GPUCTL-LAB");
    context.setQueue(job.text("queue", "default"));
    context.setMaxAppAttempts(2);
    if (!job.list("tags").isEmpty()) {
      context.setApplicationTags(new HashSet<>(job.list("tags")));
    }
    context.setPriority(Priority.newInstance((int) job.number("priority", 0)));
    Resource size = Resource.newInstance(256, 1);
    if (job.number("am_gpus", 0) > 0) {
      size.setResourceValue("yarn.io/gpu", job.number("am_gpus", 0));
    }
    context.setResource(size);
    Map<String, String> environment = new HashMap<>();
    for (String name : new String[] {"CLASSPATH", "LAB_EVENTS"}) {
      environment.put(name, System.getenv(name));
    }
    environment.put("LAB_JOB", job.line);
    String command = System.getenv("LAB_JAVA") + " LabMaster 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr";
    context.setAMContainerSpec(ContainerLaunchContext.newInstance(
        null, environment, Collections.singletonList(command), null, null, null));
    long call = System.currentTimeMillis();
    String refused = null;
    try {
      run.client.submitApplication(context);
    } catch (YarnException error) {
      refused = error.getMessage();
    }
    events.write("submit", "key", job.text("key", ""), "app", run.app.toString(), "call_ms", call,
        "user", user, "queue", context.getQueue(), "name", context.getApplicationName(), "refused", refused);
    return run;
  }

  private void follow(Run run) throws Exception {
    if (run.over) {
      return;
    }
    ApplicationReport report = run.client.getApplicationReport(run.app);
    YarnApplicationState state = report.getYarnApplicationState();
    if (state != run.seen) {
      run.seen = state;
      events.write("state", "app", run.app.toString(), "state", state.toString());
    }
    run.over = state == YarnApplicationState.FINISHED || state == YarnApplicationState.FAILED
        || state == YarnApplicationState.KILLED;
    ApplicationResourceUsageReport usage = report.getApplicationResourceUsageReport();
    run.whole |= usage != null && usage.getNumUsedContainers() > run.job.number("containers", 1);
    long killAfter = run.job.number("kill_after", -1);
    boolean due = killAfter >= 0 && System.currentTimeMillis() - report.getStartTime() >= killAfter * 1000;
    if (due && !run.killed && !run.over) {
      run.killed = true;
      events.write("kill", "app", run.app.toString());
      run.client.killApplication(run.app);
    }
  }

  private void report(Run run) throws Exception {
    ApplicationReport report = run.client.getApplicationReport(run.app);
    events.write("report", "app", run.app.toString(), "user", report.getUser(), "queue", report.getQueue(),
        "name", report.getName(), "state", report.getYarnApplicationState().toString(),
        "final_status", report.getFinalApplicationStatus().toString(), "start_ms", report.getStartTime(),
        "finish_ms", report.getFinishTime(), "diagnostics", report.getDiagnostics());
    for (ApplicationAttemptReport attempt : run.client.getApplicationAttempts(run.app)) {
      ContainerId master = attempt.getAMContainerId();
      events.write("attempt", "app", run.app.toString(),
          "attempt", attempt.getApplicationAttemptId().toString(),
          "state", attempt.getYarnApplicationAttemptState().toString(),
          "host", attempt.getHost(), "master", master == null ? null : master.toString(),
          "diagnostics", attempt.getDiagnostics());
    }
  }
}
